"""The ledger: confirmed balances, pending trades and reservations of each wallet.

An account of a wallet and an asset counts what the chain confirmed, what unsettled trades will
credit and debit, and what open orders reserve. Tokens just bought can be sold at once, because
credits count from the match. Reservations never exceed confirmed + credits - debits.

A live order keeps its account, so nothing is searched for when it is filled or canceled.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NewType

from foretell.domain.errors import exchange as refusals
from foretell.domain.exchange.book import RestingOrder
from foretell.domain.exchange.indexes.order_index import OrderIndex
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32

AssetId = NewType("AssetId", str)
"""A token id as a decimal string, or COLLATERAL."""

COLLATERAL: Final = AssetId(refusals.COLLATERAL)

Move = tuple[Address, AssetId, int]
"""A wallet, an asset and the units that a trade credits, or debits when negative, on the chain."""

_BUY: Final = Side.BUY

INDEXED_ABOVE: Final = 200
"""The open orders of a wallet above which they are indexed: a walk of fewer costs little."""


class LiveOrder(RestingOrder):
    """An order that rests in a book and reserves what it gives in an account.

    Two orders are equal only if they are the same object. `older` and `newer` are its neighbours
    among the orders of its account; `trade_ids` are the newest trades that it has a part in.
    """

    __slots__ = (
        "account",
        "condition_id",
        "leaves_at_s",
        "newer",
        "nonce",
        "older",
        "order_id",
        "order_type",
        "owner",
        "placed_at_ms",
        "side",
        "signer",
        "size_units",
        "trade_ids",
    )
    account: "Account"
    order_id: Bytes32
    condition_id: Bytes32
    signer: Address
    owner: str
    side: Side
    size_units: int
    order_type: OrderType
    leaves_at_s: int | None
    placed_at_ms: int
    nonce: int
    trade_ids: tuple[str, ...]
    older: "LiveOrder | None"
    newer: "LiveOrder | None"

    @property
    def maker(self) -> Address:
        """The wallet that pays."""
        return self.account.wallet.address

    @property
    def is_bid(self) -> bool:
        """Whether the order is a bid for yes."""
        return self.level.side.is_bid

    @property
    def is_yes(self) -> bool:
        """Whether the order is for the token of yes."""
        return self.is_bid == (self.side is _BUY)

    @property
    def yes_price_ticks(self) -> int:
        """The price in ticks of yes."""
        return self.level.yes_price_ticks

    @property
    def price_ticks(self) -> int:
        """The price in ticks of the order's own token: a buyer's is its rank."""
        level = self.level
        return level.rank if self.side is _BUY else level.side.ticks_per_one - level.rank

    def is_due(self, now_s: int) -> bool:
        """Return whether the order has expired."""
        return self.leaves_at_s is not None and self.leaves_at_s <= now_s

    def reserved_units(self) -> int:
        """Return what the order reserves of the asset that it gives; a cost is rounded up."""
        if self.side is _BUY:
            level = self.level
            return -(-self.remaining_units * level.rank // level.side.ticks_per_one)
        return self.remaining_units


class Account:
    """One wallet's units of one asset, and the newest of the orders that reserve some of them."""

    __slots__ = (
        "confirmed_units",
        "credit_units",
        "debit_units",
        "newest_order",
        "reserved_units",
        "wallet",
    )

    def __init__(self, wallet: "WalletAccounts") -> None:
        self.wallet = wallet
        self.confirmed_units = 0
        self.credit_units = 0
        self.debit_units = 0
        self.reserved_units = 0
        self.newest_order: LiveOrder | None = None

    def orders(self) -> list[LiveOrder]:
        """Return the orders that reserve units of the account, the newest first."""
        orders, order = [], self.newest_order
        while order is not None:
            orders.append(order)
            order = order.older
        return orders

    def reserve(self, order: LiveOrder, units: int) -> None:
        """Reserve what an order that now rests may cost."""
        self.reserved_units += units
        assert self.reserved_units + self.debit_units <= self.confirmed_units + self.credit_units, (
            "funds were checked"
        )
        newest = self.newest_order
        order.older, order.newer = newest, None
        if newest is not None:
            newest.newer = order
        self.newest_order = order
        wallet = self.wallet
        wallet.orders_count += 1
        if wallet.orders_count > INDEXED_ABOVE:
            wallet.index_order(order)

    def release(self, order: LiveOrder, units: int) -> None:
        """Release the rest of what an order reserved that left its book."""
        self.reserved_units -= units
        assert self.reserved_units >= 0
        older, newer = order.older, order.newer
        if newer is None:
            assert self.newest_order is order, "it is among the orders of its account"
            self.newest_order = older
        else:
            newer.older = older
            order.newer = None
        if older is not None:
            older.newer = newer
            order.older = None
        wallet = self.wallet
        wallet.orders_count -= 1
        if wallet.order_index is not None:
            wallet.unindex_order(order)


class WalletAccounts:
    """The accounts of one wallet by their assets, and what it allows each exchange to move.

    `owner` and `signer` are those of its newest order. Each command brings its own copies of such
    strings; an order with equal ones shares these, so that a million orders store them once.
    """

    __slots__ = (
        "account_by_asset",
        "address",
        "collateral_allowance_by_exchange",
        "order_index",
        "orders_count",
        "owner",
        "signer",
        "token_allowance_by_exchange",
    )

    def __init__(self, address: Address) -> None:
        self.address = address
        self.account_by_asset: dict[AssetId, Account] = {}
        self.collateral_allowance_by_exchange: dict[Address, int] = {}
        self.token_allowance_by_exchange: dict[Address, int] = {}
        self.orders_count = 0
        self.order_index: OrderIndex[LiveOrder] | None = None
        self.owner = ""
        self.signer = address

    def allowances(self, *, of_collateral: bool) -> dict[Address, int]:
        """Return what the wallet allows each exchange to move of collateral, or of its tokens."""
        if of_collateral:
            return self.collateral_allowance_by_exchange
        return self.token_allowance_by_exchange

    def account(self, asset: AssetId) -> Account:
        """Return the account of an asset, a new one when there is none."""
        account = self.account_by_asset.get(asset)
        if account is None:
            account = self.account_by_asset[asset] = Account(self)
        return account

    def index_order(self, order: LiveOrder) -> None:
        """Keep one more order of a wallet that has many in its index."""
        if self.order_index is None:
            self.order_index = OrderIndex(self._orders())
        else:
            self.order_index.add(order)

    def unindex_order(self, order: LiveOrder) -> None:
        """Remove an order from the index, and the index when few orders are left."""
        assert self.order_index is not None
        self.order_index.remove(order)
        if self.orders_count < INDEXED_ABOVE // 2:
            self.order_index = None

    def orders_of(
        self, owner: str | None = None, condition_id: Bytes32 | None = None
    ) -> Iterator[LiveOrder]:
        """Yield the open orders of a key in a market, where None stands for any."""
        if self.order_index is not None and not (owner is None and condition_id is None):
            yield from self.order_index.orders_of(owner, condition_id)
            return
        for order in self._orders():
            if owner in {None, order.owner} and condition_id in {None, order.condition_id}:
                yield order

    def orders_count_in(self, condition_id: Bytes32) -> int:
        """Return the number of open orders in a market."""
        if self.order_index is not None:
            return self.order_index.count_in(condition_id)
        return sum(1 for _ in self.orders_of(condition_id=condition_id))

    def _orders(self) -> Iterator[LiveOrder]:
        """Yield the open orders of each account, the oldest first."""
        for account in self.account_by_asset.values():
            yield from reversed(account.orders())


NOBODY: Final = WalletAccounts(ZERO_ADDRESS)
"""The accounts of a wallet that has none."""


class Ledger:
    """All accounts, and what each wallet allows each exchange to move."""

    __slots__ = ("_allowances", "accounts_by_wallet")

    def __init__(self) -> None:
        self.accounts_by_wallet: dict[Address, WalletAccounts] = {}
        """Those that have accounts are in the order of their first one."""
        self._allowances: dict[tuple[Address, Address, bool], int] = {}

    def account(self, wallet: Address, asset: AssetId) -> Account:
        """Return the account, a new one when there is none."""
        accounts = self.accounts_by_wallet.get(wallet)
        if accounts is None:
            accounts = self.accounts_by_wallet[wallet] = WalletAccounts(wallet)
        account = accounts.account_by_asset.get(asset)
        if account is not None:
            return account
        if not accounts.account_by_asset:
            self.accounts_by_wallet[wallet] = self.accounts_by_wallet.pop(wallet)
        return accounts.account(asset)

    def look_up(self, wallet: Address, asset: AssetId) -> Account:
        """Return the account, or an empty one that is not stored."""
        accounts = self.accounts_by_wallet.get(wallet) or WalletAccounts(wallet)
        return accounts.account_by_asset.get(asset) or Account(accounts)

    def allow(self, wallet: Address, exchange: Address, units: int, *, of_collateral: bool) -> None:
        """Set what the wallet allows the exchange to move on the chain."""
        assert units >= 0
        self._allowances[wallet, exchange, of_collateral] = units
        accounts = self.accounts_by_wallet.get(wallet)
        if accounts is None:
            accounts = self.accounts_by_wallet[wallet] = WalletAccounts(wallet)
        accounts.allowances(of_collateral=of_collateral)[exchange] = units

    def allowance_units(self, wallet: Address, exchange: Address, asset: AssetId) -> int:
        """Return what the wallet allows the exchange to move of this asset."""
        return self.allowed_units(wallet, exchange, of_collateral=asset == COLLATERAL)

    def allowed_units(self, wallet: Address, exchange: Address, *, of_collateral: bool) -> int:
        """Return what the wallet allows the exchange to move of collateral, or of its tokens."""
        return self._allowances.get((wallet, exchange, of_collateral), 0)

    def spendable_units(self, wallet: Address, exchange: Address, asset: AssetId) -> int:
        """Return what a new order may reserve; below zero when the chain no longer covers open orders."""
        account = self.look_up(wallet, asset)
        held_units = account.confirmed_units + account.credit_units
        allowed_units = self.allowance_units(wallet, exchange, asset)
        return min(allowed_units, held_units) - account.debit_units - account.reserved_units

    def shortfall(
        self, wallet: Address, exchange: Address, asset: AssetId, need_units: int
    ) -> refusals.NotEnoughFunds:
        """Return the refusal of an order that the wallet cannot cover, with one of three causes."""
        account = self.look_up(wallet, asset)
        held = account.confirmed_units + account.credit_units - account.debit_units
        allowance = self.allowance_units(wallet, exchange, asset)
        if held < need_units:
            refusal: type[refusals.NotEnoughFunds] = refusals.InsufficientBalance
        elif allowance - account.debit_units < need_units:
            refusal = refusals.InsufficientAllowance
        else:
            refusal = refusals.ReservedByOpenOrders
        return refusal(
            refusals.Shortfall(
                asset=asset,
                spender=exchange,
                need_units=need_units,
                have_units=account.confirmed_units,
                pending_units=account.credit_units - account.debit_units,
                reserved_units=account.reserved_units,
                allowance_units=allowance,
            )
        )

    def missing_units(
        self, wallet: Address, exchange: Address, asset: AssetId, need_units: int
    ) -> int:
        """Return how much more the wallet must hold to cover it, 0 when no balance would suffice."""
        account = self.look_up(wallet, asset)
        allowed = self.allowance_units(wallet, exchange, asset) - account.debit_units
        if allowed - account.reserved_units < need_units:
            return 0
        return max(need_units - self.spendable_units(wallet, exchange, asset), 0)

    def pend(self, moves: Iterable[Move]) -> None:
        """Add the moves of a trade that a reorg took off the chain to credits and debits.

        The wallet may have spent the funds there, so they may exceed what it holds.
        """
        for wallet, asset, units in moves:
            account = self.account(wallet, asset)
            if units >= 0:
                account.credit_units += units
            else:
                account.debit_units -= units

    def unpend(self, moves: Iterable[Move]) -> None:
        """Remove the moves of a trade that is on the chain, or has failed."""
        for wallet, asset, units in moves:
            account = self.account(wallet, asset)
            if units >= 0:
                account.credit_units -= units
                assert account.credit_units >= 0
            else:
                account.debit_units += units
                assert account.debit_units >= 0

    def assets(self, wallet: Address) -> list[AssetId]:
        """Return the assets that have an account in this wallet."""
        accounts = self.accounts_by_wallet.get(wallet)
        return [] if accounts is None else list(accounts.account_by_asset)

    def accounts(self) -> Iterator[tuple[Address, AssetId, Account]]:
        """Yield all accounts; those of a wallet in the order of their creation."""
        for wallet, accounts in self.accounts_by_wallet.items():
            for asset, account in accounts.account_by_asset.items():
                yield wallet, asset, account

    def allowances(self) -> Iterator[tuple[tuple[Address, Address, bool], int]]:
        """Yield the wallet, exchange and kind of each allowance, and its units."""
        yield from self._allowances.items()

    def accounts_held(self) -> list[tuple[Address, AssetId]]:
        """Return the accounts with a confirmed balance other than zero."""
        return [
            (wallet, asset) for wallet, asset, account in self.accounts() if account.confirmed_units
        ]

    def allowances_held(self) -> list[tuple[Address, Address, bool]]:
        """Return the wallet, exchange and kind of each allowance that is not zero."""
        return [key for key, units in self._allowances.items() if units]

"""What a wallet has, has reserved, and is owed until settlement.

Of each asset a wallet has what the chain confirmed, what unsettled trades will add and take, and
what its open orders reserve. Tokens just bought can be sold at once: what a trade will bring counts
from the moment of the match. Never more is reserved than is there.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NewType

from foretell.domain.errors import exchange as matching_errors
from foretell.domain.exchange.book import LiveOrder
from foretell.domain.values.hexadecimal import Address, Bytes32

AssetId = NewType("AssetId", str)
"""A token id as a decimal string, or COLLATERAL."""

COLLATERAL: Final = AssetId(matching_errors.COLLATERAL)


Move = tuple[Address, AssetId, int]
"""What a trade adds to an account, or takes below zero, once it is on the chain."""


class Account:
    """One wallet's units of one asset."""

    __slots__ = (
        "confirmed_units",
        "credit_units",
        "debit_units",
        "orders",
        "reserved_units",
        "wallet",
    )

    def __init__(self, wallet: Address) -> None:
        self.wallet = wallet
        self.confirmed_units = 0
        self.credit_units = 0
        self.debit_units = 0
        self.reserved_units = 0
        self.orders: dict[Bytes32, LiveOrder] = {}


class Ledger:
    """Every account, and what each wallet allows each exchange to move."""

    __slots__ = ("_accounts_by_wallet", "_allowances")

    def __init__(self) -> None:
        self._accounts_by_wallet: dict[Address, dict[AssetId, Account]] = {}
        self._allowances: dict[tuple[Address, Address, bool], int] = {}

    def account(self, wallet: Address, asset: AssetId) -> Account:
        """Return the account, a new one when the wallet was not heard of."""
        accounts = self._accounts_by_wallet.get(wallet)
        if accounts is None:
            accounts = self._accounts_by_wallet[wallet] = {}
        account = accounts.get(asset)
        if account is None:
            account = accounts[asset] = Account(wallet)
        return account

    def look_up(self, wallet: Address, asset: AssetId) -> Account:
        """Return the account, or an empty one that is not kept: looking changes nothing."""
        return self._accounts_by_wallet.get(wallet, {}).get(asset) or Account(wallet)

    def allow(self, wallet: Address, exchange: Address, units: int, *, of_collateral: bool) -> None:
        """Record what the wallet allows the exchange to move, as the chain says."""
        self._allowances[wallet, exchange, of_collateral] = units

    def allowance_units(self, wallet: Address, exchange: Address, asset: AssetId) -> int:
        """Return what the wallet allows the exchange to move of this asset."""
        return self.allowed_units(wallet, exchange, of_collateral=asset == COLLATERAL)

    def allowed_units(self, wallet: Address, exchange: Address, *, of_collateral: bool) -> int:
        """Return what the wallet allows the exchange to move of collateral, or of its tokens."""
        return self._allowances.get((wallet, exchange, of_collateral), 0)

    def spendable_units(self, wallet: Address, exchange: Address, asset: AssetId) -> int:
        """Return what a new order may reserve; below zero when open orders outran the chain."""
        accounts = self._accounts_by_wallet.get(wallet)
        account = None if accounts is None else accounts.get(asset)
        allowed = self._allowances.get((wallet, exchange, asset == COLLATERAL), 0)
        if account is None:
            return min(allowed, 0)
        held = account.confirmed_units + account.credit_units
        return min(allowed, held) - account.debit_units - account.reserved_units

    def check_funds(
        self, wallet: Address, exchange: Address, asset: AssetId, need_units: int
    ) -> None:
        """Refuse when the wallet cannot cover it, saying which of the three causes it is."""
        if self.spendable_units(wallet, exchange, asset) >= need_units:
            return
        account = self.look_up(wallet, asset)
        held = account.confirmed_units + account.credit_units - account.debit_units
        allowance = self.allowance_units(wallet, exchange, asset)
        if held < need_units:
            refusal: type[matching_errors.NotEnoughFunds] = matching_errors.InsufficientBalance
        elif allowance - account.debit_units < need_units:
            refusal = matching_errors.InsufficientAllowance
        else:
            refusal = matching_errors.ReservedByOpenOrders
        raise refusal(
            asset=asset,
            spender=exchange,
            need=need_units,
            have=account.confirmed_units,
            pending=account.credit_units - account.debit_units,
            reserved=account.reserved_units,
            allowance=allowance,
        )

    def missing_units(
        self, wallet: Address, exchange: Address, asset: AssetId, need_units: int
    ) -> int:
        """Return how much more the wallet would have to hold; 0 when that would not help."""
        account = self.look_up(wallet, asset)
        allowed = self.allowance_units(wallet, exchange, asset) - account.debit_units
        if allowed - account.reserved_units < need_units:
            return 0
        return max(need_units - self.spendable_units(wallet, exchange, asset), 0)

    def reserve(self, order: LiveOrder, asset: AssetId, units: int) -> None:
        """Set aside what an order that now rests may cost.

        It takes over the account's own word for the wallet: what many orders share is found sooner
        when they leave, and is kept once.
        """
        account = self.account(order.maker, asset)
        if order.signer is order.maker:
            order.signer = account.wallet
        order.maker = account.wallet
        account.reserved_units += units
        account.orders[order.order_id] = order

    def release(self, order: LiveOrder, asset: AssetId, units: int, *, is_closed: bool) -> None:
        """Give back what an order no longer needs."""
        account = self.account(order.maker, asset)
        account.reserved_units -= units
        assert account.reserved_units >= 0
        if is_closed:
            del account.orders[order.order_id]

    def pend(self, moves: Iterable[Move]) -> None:
        """Add (or, below zero, take) what an unsettled trade will move."""
        for wallet, asset, units in moves:
            account = self.account(wallet, asset)
            if units >= 0:
                account.credit_units += units
            else:
                account.debit_units -= units

    def unpend(self, moves: Iterable[Move]) -> None:
        """Undo `pend`: the trade is on the chain, or never will be."""
        for wallet, asset, units in moves:
            account = self.account(wallet, asset)
            if units >= 0:
                account.credit_units -= units
                assert account.credit_units >= 0
            else:
                account.debit_units += units
                assert account.debit_units >= 0

    def assets(self, wallet: Address) -> list[AssetId]:
        """Return the assets that were ever heard of in this wallet."""
        return list(self._accounts_by_wallet.get(wallet, ()))

    def accounts(self) -> Iterator[tuple[Address, AssetId, Account]]:
        """Yield every account; a wallet's own in the order in which its assets were heard of."""
        for wallet, accounts in self._accounts_by_wallet.items():
            for asset, account in accounts.items():
                yield wallet, asset, account

    def allowances(self) -> Iterator[tuple[tuple[Address, Address, bool], int]]:
        """Yield the wallet, the exchange and the kind of every allowance, and its units."""
        yield from self._allowances.items()

    def accounts_held(self) -> list[tuple[Address, AssetId]]:
        """Return the accounts in which the chain confirmed anything."""
        return [
            (wallet, asset)
            for wallet, accounts in self._accounts_by_wallet.items()
            for asset, account in accounts.items()
            if account.confirmed_units
        ]

    def allowances_held(self) -> list[tuple[Address, Address, bool]]:
        """Return the wallet, the exchange and the kind of every allowance that is not zero."""
        return [key for key, units in self._allowances.items() if units]

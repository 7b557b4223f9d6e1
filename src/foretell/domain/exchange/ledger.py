"""The ledger: confirmed balances, pending trades and reservations of each wallet.

An account of a wallet and an asset counts what the chain confirmed, what unsettled trades will
credit and debit, and what open orders reserve. Tokens just bought can be sold at once, because
credits count from the match. Reservations never exceed confirmed + credits - debits.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NewType

from foretell.domain.errors import exchange as refusals
from foretell.domain.exchange.book import LiveOrder
from foretell.domain.values.hexadecimal import Address, Bytes32

AssetId = NewType("AssetId", str)
"""A token id as a decimal string, or COLLATERAL."""

COLLATERAL: Final = AssetId(refusals.COLLATERAL)

Move = tuple[Address, AssetId, int]
"""A wallet, an asset and the units that a trade credits, or debits when negative, on the chain."""


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
    """All accounts, and what each wallet allows each exchange to move."""

    __slots__ = ("_accounts_by_wallet", "_allowances")

    def __init__(self) -> None:
        self._accounts_by_wallet: dict[Address, dict[AssetId, Account]] = {}
        self._allowances: dict[tuple[Address, Address, bool], int] = {}

    def account(self, wallet: Address, asset: AssetId) -> Account:
        """Return the account, a new one when there is none."""
        accounts = self._accounts_by_wallet.get(wallet)
        if accounts is None:
            accounts = self._accounts_by_wallet[wallet] = {}
        account = accounts.get(asset)
        if account is None:
            account = accounts[asset] = Account(wallet)
        return account

    def look_up(self, wallet: Address, asset: AssetId) -> Account:
        """Return the account, or an empty one that is not stored."""
        return self._accounts_by_wallet.get(wallet, {}).get(asset) or Account(wallet)

    def allow(self, wallet: Address, exchange: Address, units: int, *, of_collateral: bool) -> None:
        """Set what the wallet allows the exchange to move on the chain."""
        assert units >= 0
        self._allowances[wallet, exchange, of_collateral] = units

    def allowance_units(self, wallet: Address, exchange: Address, asset: AssetId) -> int:
        """Return what the wallet allows the exchange to move of this asset."""
        return self.allowed_units(wallet, exchange, of_collateral=asset == COLLATERAL)

    def allowed_units(self, wallet: Address, exchange: Address, *, of_collateral: bool) -> int:
        """Return what the wallet allows the exchange to move of collateral, or of its tokens."""
        return self._allowances.get((wallet, exchange, of_collateral), 0)

    def spendable_units(self, wallet: Address, exchange: Address, asset: AssetId) -> int:
        """Return what a new order may reserve; below zero when the chain no longer covers open orders."""
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
        """Refuse an order that the wallet cannot cover, with one of three causes."""
        if self.spendable_units(wallet, exchange, asset) >= need_units:
            return
        account = self.look_up(wallet, asset)
        held = account.confirmed_units + account.credit_units - account.debit_units
        allowance = self.allowance_units(wallet, exchange, asset)
        if held < need_units:
            refusal: type[refusals.NotEnoughFunds] = refusals.InsufficientBalance
        elif allowance - account.debit_units < need_units:
            refusal = refusals.InsufficientAllowance
        else:
            refusal = refusals.ReservedByOpenOrders
        raise refusal(
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

    def reserve(self, order: LiveOrder, asset: AssetId, units: int) -> None:
        """Reserve what an order that now rests may cost."""
        account = self.account(order.maker, asset)
        # Each command brings its own copy of the wallet's address. The order takes the account's
        # copy instead, so that a million orders of a wallet store it once, and so that look-ups by
        # it compare identities and not 42 characters.
        if order.signer is order.maker:
            order.signer = account.wallet
        order.maker = account.wallet
        account.reserved_units += units
        account.orders[order.order_id] = order
        used_units = account.reserved_units + account.debit_units
        assert used_units <= account.confirmed_units + account.credit_units, "funds were checked"

    def release(self, order: LiveOrder, asset: AssetId, units: int, *, is_closed: bool) -> None:
        """Release what an order no longer needs."""
        account = self.account(order.maker, asset)
        account.reserved_units -= units
        assert account.reserved_units >= 0
        if is_closed:
            del account.orders[order.order_id]

    def pend(self, moves: Iterable[Move], *, is_forced: bool = False) -> None:
        """Add the moves of an unsettled trade to credits and debits.

        A match debits no more than the funds that were checked. The moves of a trade that a reorg
        took off the chain are forced: the wallet may have spent the funds there.
        """
        for wallet, asset, units in moves:
            account = self.account(wallet, asset)
            if units >= 0:
                account.credit_units += units
            else:
                account.debit_units -= units
                used_units = account.reserved_units + account.debit_units
                held_units = account.confirmed_units + account.credit_units
                assert is_forced or used_units <= held_units, "funds were checked"

    def unpend(self, moves: Iterable[Move]) -> None:
        """Undo `pend` for a trade that is on the chain, or has failed."""
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
        return list(self._accounts_by_wallet.get(wallet, ()))

    def accounts(self) -> Iterator[tuple[Address, AssetId, Account]]:
        """Yield all accounts; those of a wallet in the order of their creation."""
        for wallet, accounts in self._accounts_by_wallet.items():
            for asset, account in accounts.items():
                yield wallet, asset, account

    def allowances(self) -> Iterator[tuple[tuple[Address, Address, bool], int]]:
        """Yield the wallet, exchange and kind of each allowance, and its units."""
        yield from self._allowances.items()

    def accounts_held(self) -> list[tuple[Address, AssetId]]:
        """Return the accounts with a confirmed balance other than zero."""
        return [
            (wallet, asset)
            for wallet, accounts in self._accounts_by_wallet.items()
            for asset, account in accounts.items()
            if account.confirmed_units
        ]

    def allowances_held(self) -> list[tuple[Address, Address, bool]]:
        """Return the wallet, exchange and kind of each allowance that is not zero."""
        return [key for key, units in self._allowances.items() if units]

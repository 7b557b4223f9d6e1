"""The current values of everything that a range of blocks touches, and their changes."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.portfolio.positions import NO_POSITION, ONE_HALF, Payout, Position, TradePrice
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32
from foretell.domain.values.tokens import TokenPair
from foretell.store.index.traded_volumes import UNLISTED, RunningVolume, VolumeKey

UNREPORTED: Final = Payout(1, 1)
UNLIMITED_UNITS: Final = AMOUNT_UNITS_MAX
"""An allowance of this amount or more is never reduced."""
NO_MOVE: Final = "act without its tokens"
"""The reason of an act whose log names tokens that did not move."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TokenOutcome(NamedTuple):
    """The condition and the outcome of a token."""

    condition_id: Bytes32
    is_yes: bool


class WalletTotals(NamedTuple):
    """The trades of a wallet, the conditions it traded in, and the collateral of its trades."""

    trades: int = 0
    markets: int = 0
    volume_units: int = 0


class TrackedValues(Generic[K, V]):
    """Values that change block by block; the end of a block returns its net changes."""

    def __init__(self, default: V, values: Mapping[K, V] | None = None) -> None:
        self._default = default
        self._values = dict(values or {})
        self._before: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self._values.get(key, self._default)

    def __setitem__(self, key: K, value: V) -> None:
        self._before.setdefault(key, self[key])
        self._values[key] = value

    def begin(self, values: Mapping[K, V]) -> None:
        """Add values as they are before the first block."""
        self._values.update(values)

    def close_block(self) -> list[tuple[K, V]]:
        """Return the values that differ from those before the block, and begin the next one."""
        changed = [(key, self[key]) for key, value in self._before.items() if self[key] != value]
        self._before.clear()
        return changed


@dataclass(frozen=True, slots=True)
class IndexState:
    """All values that logs are interpreted with, and all values that they change."""

    balances: TrackedValues[tuple[Address, AssetId], int] = field(
        default_factory=lambda: TrackedValues(0)
    )
    supplies: TrackedValues[AssetId, int] = field(default_factory=lambda: TrackedValues(0))
    allowances: TrackedValues[tuple[Address, Address, bool], int] = field(
        default_factory=lambda: TrackedValues(0)
    )
    positions: TrackedValues[tuple[Address, AssetId], Position] = field(
        default_factory=lambda: TrackedValues(NO_POSITION)
    )
    locked: TrackedValues[Bytes32, int] = field(default_factory=lambda: TrackedValues(0))
    released: TrackedValues[Bytes32, int] = field(default_factory=lambda: TrackedValues(0))
    totals: TrackedValues[Address, WalletTotals] = field(
        default_factory=lambda: TrackedValues(WalletTotals())
    )
    traded: set[tuple[Address, Bytes32]] = field(default_factory=set)
    volumes: TrackedValues[VolumeKey, RunningVolume] = field(
        default_factory=lambda: TrackedValues(RunningVolume())
    )
    exchange_by_condition: dict[Bytes32, Address] = field(default_factory=dict)
    pair_by_condition: dict[Bytes32, TokenPair] = field(default_factory=dict)
    outcome_by_token: dict[AssetId, TokenOutcome] = field(default_factory=dict)
    collateral_by_condition: dict[Bytes32, Address] = field(default_factory=dict)
    payout_by_condition: dict[Bytes32, Payout] = field(default_factory=dict)
    price_by_token: dict[AssetId, TradePrice] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)

    def price(self, token_id: AssetId) -> TradePrice:
        """Return the price at which a transferred token counts: that of its last trade."""
        return self.price_by_token.get(token_id, ONE_HALF)

    def payout_of(self, condition_id: Bytes32) -> Payout:
        """Return the reported payout of a condition; until then each outcome counts as one half."""
        return self.payout_by_condition.get(condition_id, UNREPORTED)

    def add_condition(self, condition_id: Bytes32, pair: TokenPair, collateral: Address) -> None:
        """Add a condition with its tokens and their collateral."""
        self.pair_by_condition[condition_id] = pair
        self.collateral_by_condition[condition_id] = collateral
        self.outcome_by_token[AssetId(str(pair.yes))] = TokenOutcome(condition_id, is_yes=True)
        self.outcome_by_token[AssetId(str(pair.no))] = TokenOutcome(condition_id, is_yes=False)

    def move(self, sender: Address, receiver: Address, asset: AssetId, units: int) -> None:
        """Move an asset; mints come from the zero address, and burns go there. A token's supply is what balances add up to."""
        for wallet, change in ((sender, -units), (receiver, units)):
            if wallet != ZERO_ADDRESS:
                held_units = self.balances[wallet, asset]
                self.balances[wallet, asset] = _bounded(held_units + change)
                if asset != COLLATERAL:
                    self.supplies[asset] += self.balances[wallet, asset] - held_units

    def lock(self, condition_id: Bytes32, units: int) -> None:
        """Lock collateral for a condition; a negative amount releases it."""
        self.locked[condition_id] = _bounded(self.locked[condition_id] + units)

    def release(self, condition_id: Bytes32, units: int) -> None:
        """Release the collateral under converted No tokens, unless it is under Yes tokens that are paid."""
        payout = self.payout_by_condition.get(condition_id)
        if payout is None or not payout.yes:
            self.lock(condition_id, -units)
            self.released[condition_id] = _bounded(self.released[condition_id] + units)

    def add_trade(
        self, wallet: Address, condition_id: Bytes32, cost_units: int, timestamp_s: int
    ) -> bool:
        """Add a trade of a wallet, and return whether it is its first in the condition."""
        before, key = self.totals[wallet], (wallet, condition_id)
        is_first = key not in self.traded
        self.traded.add(key)
        volume_units = _bounded(before.volume_units + cost_units)
        self.totals[wallet] = WalletTotals(
            before.trades + 1, before.markets + is_first, volume_units
        )
        exchange = self.exchange_by_condition.get(condition_id, UNLISTED)
        units = self.volumes[wallet, exchange].units + cost_units
        self.volumes[wallet, exchange] = RunningVolume(units, timestamp_s)
        return is_first

    def spend(self, wallet: Address, spender: Address, units: int) -> None:
        """Reduce a wallet's collateral allowance by what the spender moved."""
        key = (wallet, spender, True)
        allowed_units = self.allowances[key]
        if allowed_units != UNLIMITED_UNITS:
            self.allowances[key] = max(0, allowed_units - units)

    def fits(self, *amounts_units: int) -> bool:
        """Return whether the amounts fit a column; larger ones are counted as ignored."""
        is_fit = max(amounts_units) <= AMOUNT_UNITS_MAX
        if not is_fit:
            self.ignore("amount of more than 63 bits")
        return is_fit

    def ignore(self, reason: str) -> None:
        """Count an ignored log by its reason."""
        self.ignored[reason] += 1


def _bounded(units: int) -> int:
    """Return the units within the range of a column; only ignored logs can leave it."""
    return max(0, min(units, AMOUNT_UNITS_MAX))

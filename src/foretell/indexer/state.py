"""What the tables say of everything that a range of blocks touches, and how it changes."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import NO_POSITION, ONE_HALF, Payout, Position, TradePrice
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32
from foretell.domain.values.tokens import TokenPair

UNLIMITED_UNITS: Final = AMOUNT_UNITS_MAX
"""An allowance of so much or more never shrinks."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BlockOutcome(NamedTuple):
    """Which outcome of which condition a token is."""

    condition_id: Bytes32
    is_yes: bool


class Tracked(Generic[K, V]):
    """Values that change block by block; each block's net changes are told when it ends."""

    def __init__(self, default: V, values: Mapping[K, V] | None = None) -> None:
        self._default = default
        self._values = dict(values or {})
        self._before: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self._values.get(key, self._default)

    def __setitem__(self, key: K, value: V) -> None:
        self._before.setdefault(key, self[key])
        self._values[key] = value

    def close_block(self) -> list[tuple[K, V]]:
        """Return what is different from before the block, and begin the next one."""
        changed = [(key, self[key]) for key, value in self._before.items() if self[key] != value]
        self._before.clear()
        return changed


@dataclass(frozen=True, slots=True)
class IndexState:
    """Everything that decides what a log means, and everything that it changes."""

    balances: Tracked[tuple[Address, AssetId], int] = field(default_factory=lambda: Tracked(0))
    allowances: Tracked[tuple[Address, Address, bool], int] = field(
        default_factory=lambda: Tracked(0)
    )
    positions: Tracked[tuple[Address, AssetId], Position] = field(
        default_factory=lambda: Tracked(NO_POSITION)
    )
    locked: Tracked[Bytes32, int] = field(default_factory=lambda: Tracked(0))
    pair_by_condition: dict[Bytes32, TokenPair] = field(default_factory=dict)
    outcome_by_token: dict[AssetId, BlockOutcome] = field(default_factory=dict)
    collateral_by_condition: dict[Bytes32, Address] = field(default_factory=dict)
    payout_by_condition: dict[Bytes32, Payout] = field(default_factory=dict)
    price_by_token: dict[AssetId, TradePrice] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)

    def price(self, token_id: AssetId) -> TradePrice:
        """Return the price at which a token counts when it is given: its last trade's."""
        return self.price_by_token.get(token_id, ONE_HALF)

    def add_condition(self, condition_id: Bytes32, pair: TokenPair, collateral: Address) -> None:
        """Know a condition, its tokens and what backs them from now on."""
        self.pair_by_condition[condition_id] = pair
        self.collateral_by_condition[condition_id] = collateral
        self.outcome_by_token[AssetId(str(pair.yes))] = BlockOutcome(condition_id, is_yes=True)
        self.outcome_by_token[AssetId(str(pair.no))] = BlockOutcome(condition_id, is_yes=False)

    def move(self, sender: Address, receiver: Address, asset: AssetId, units: int) -> None:
        """Move an asset; the zero address is where it is made and burned."""
        for wallet, change in ((sender, -units), (receiver, units)):
            if wallet != ZERO_ADDRESS:
                self.balances[wallet, asset] = _bounded(self.balances[wallet, asset] + change)

    def lock(self, condition_id: Bytes32, units: int) -> None:
        """Put collateral behind a condition, or below zero release it."""
        self.locked[condition_id] = _bounded(self.locked[condition_id] + units)

    def spend(self, wallet: Address, spender: Address, units: int) -> None:
        """Take what a spender moved of a wallet's collateral off its allowance."""
        key = (wallet, spender, True)
        allowed_units = self.allowances[key]
        if allowed_units != UNLIMITED_UNITS:
            self.allowances[key] = max(0, allowed_units - units)

    def fits(self, *amounts_units: int) -> bool:
        """Return whether amounts are ones that we account for; others are counted."""
        is_fit = max(amounts_units) <= AMOUNT_UNITS_MAX
        if not is_fit:
            self.ignore("amount of more than 63 bits")
        return is_fit

    def ignore(self, reason: str) -> None:
        """Count a log that does not concern us."""
        self.ignored[reason] += 1


def _bounded(units: int) -> int:
    """Return the units within what a column holds; only what was ignored makes a difference."""
    return max(0, min(units, AMOUNT_UNITS_MAX))

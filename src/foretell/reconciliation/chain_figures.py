"""All figures that the logs of the chain lead to, kept in plain mappings."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.reconciliation.holdings import NOTHING_HELD, UNITS_MAX, CountedPosition

CASH: Final = "0"
"""The collateral among a wallet's assets."""

Holding = tuple[str, str]
"""A wallet and a token."""
Place = tuple[int, int]
"""A block and the index of a log in it."""


class ReadContracts(NamedTuple):
    """The contracts whose logs are read; there may be no adapter."""

    collateral: str
    tokens: str
    exchanges: frozenset[str]
    adapter: str
    wrapped: str

    @property
    def all(self) -> frozenset[str]:
        """Every contract that has an address here."""
        return frozenset({self.collateral, self.tokens, *self.exchanges, self.adapter}) - {""}

    @property
    def spenders(self) -> frozenset[str]:
        """The contracts that move what wallets have allowed them to."""
        return frozenset({self.tokens, *self.exchanges, self.adapter}) - {""}

    @property
    def without_positions(self) -> frozenset[str]:
        """Accounts that hold tokens only for others."""
        burn = {NO_TOKEN_BURN} if self.adapter else set[str]()
        return frozenset({ZERO_ADDRESS, *self.exchanges, self.adapter, *burn})

    def backing(self, oracle: str) -> str:
        """Return the collateral of a condition with this oracle."""
        return self.wrapped if self.adapter and oracle == self.adapter else self.collateral


class CountedCondition(NamedTuple):
    """A condition and its two tokens."""

    oracle: str
    question: str
    yes: str
    no: str
    backing: str


class CountedChange(NamedTuple):
    """A position after a block that changed it."""

    block: int
    at_s: int
    position: CountedPosition


class CountedTrade(NamedTuple):
    """A trade of a wallet, for volumes."""

    block: int
    wallet: str
    condition: str
    cost: int


@dataclass(slots=True)
class ChainFigures:
    """What all logs up to a block add up to. Amounts are in base units."""

    contracts: ReadContracts
    balances: Counter[Holding] = field(default_factory=Counter)
    locked: Counter[str] = field(default_factory=Counter)
    positions: dict[Holding, CountedPosition] = field(default_factory=dict)
    changes: defaultdict[Holding, list[CountedChange]] = field(
        default_factory=lambda: defaultdict(list)
    )
    conditions: dict[str, CountedCondition] = field(default_factory=dict)
    condition_by_question: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    payouts: dict[str, tuple[int, int]] = field(default_factory=dict)
    prices: dict[str, tuple[int, int]] = field(default_factory=dict)
    acts: dict[Place, tuple[object, ...]] = field(default_factory=dict)
    fills: dict[Place, tuple[object, ...]] = field(default_factory=dict)
    trades: list[CountedTrade] = field(default_factory=list)
    allowances: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    canceled: dict[Place, tuple[str, str]] = field(default_factory=dict)
    stops: dict[tuple[int, int, int], tuple[str, str, int]] = field(default_factory=dict)
    touched: set[Holding] = field(default_factory=set)

    def move(self, sender: str, receiver: str, asset: str, units: int) -> None:
        """Move an asset; what the zero address sends is new, and what it receives is gone."""
        for wallet, change in ((sender, -units), (receiver, units)):
            if wallet != ZERO_ADDRESS:
                held = self.balances[wallet, asset] + change
                self.balances[wallet, asset] = max(0, min(held, UNITS_MAX))

    def spend(self, wallet: str, spender: str, units: int) -> None:
        """Take what a spender moved off its allowance; one without a limit stays."""
        left = self.allowances[wallet, spender, True]
        if left < UNITS_MAX:
            self.allowances[wallet, spender, True] = max(0, left - units)

    def lock(self, condition: str, units: int) -> None:
        """Add to the open interest of a condition."""
        self.locked[condition] = max(0, min(self.locked[condition] + units, UNITS_MAX))

    def add_condition(self, condition_id: str, condition: CountedCondition) -> None:
        """Add a condition, and its tokens."""
        self.conditions[condition_id] = condition
        if condition.oracle == self.contracts.adapter:
            self.condition_by_question[condition.question] = condition_id
        self.outcomes[condition.yes] = condition_id, True
        self.outcomes[condition.no] = condition_id, False

    def position(self, holding: Holding) -> CountedPosition:
        """Return a position as it is now."""
        return self.positions.get(holding, NOTHING_HELD)

    def close_block(self, number: int, at_s: int) -> None:
        """Keep each position that differs from the one before the block."""
        for holding in self.touched:
            known, now = self.changes[holding], self.positions[holding]
            before = known[-1].position if known else NOTHING_HELD
            if now != before:
                known.append(CountedChange(number, at_s, now))
        self.touched.clear()

    def position_at(self, holding: Holding, block: int) -> CountedPosition:
        """Return a position as it was after a block."""
        earlier = [each for each in self.changes[holding] if each.block <= block]
        return earlier[-1].position if earlier else NOTHING_HELD

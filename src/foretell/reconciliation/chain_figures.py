"""All figures that the logs of the chain lead to, kept in mappings of a temporary file.

Their number grows with the history of the chain, so only the last used are held in memory. A file needs one pass over
the logs, all of one chain; passes by ranges of wallets would fetch every log several times.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.reconciliation.holdings import NOTHING_HELD, UNITS_MAX, CountedPosition
from foretell.reconciliation.versioned_rows import VersionedRows
from foretell.store.spill import SpilledRows, SpillFile

CASH: Final = "0"
"""The collateral among a wallet's assets."""

Holding = tuple[str, str]
"""A wallet and a token."""
Place = tuple[int, int]
"""A block and the index of a log in it."""


class ReadContracts(NamedTuple):
    """The contracts whose logs are read; there may be no adapter, and no oracle for answers."""

    collateral: str
    tokens: str
    exchanges: frozenset[str]
    adapter: str
    wrapped: str
    oracle: str = ""

    @property
    def all(self) -> frozenset[str]:
        """Every contract that has an address here."""
        with_logs = {self.collateral, self.tokens, *self.exchanges, self.adapter, self.oracle}
        return frozenset(with_logs) - {""}

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


class CountedPayout(NamedTuple):
    """What the tokens of a condition pay, and the transaction that said so."""

    yes: int
    no: int
    at_s: int
    tx_hash: str
    block_number: int

    @property
    def price_text(self) -> str:
        """The price of Yes as a mark has it: a fraction in lowest terms."""
        price = Fraction(self.yes, self.yes + self.no)
        return f"{price.numerator}/{price.denominator}"


class CountedChange(NamedTuple):
    """A position after a block that changed it."""

    at_s: int
    position: CountedPosition


class CountedTrade(NamedTuple):
    """A trade of a wallet, for volumes."""

    wallet: str
    condition: str
    cost: int


class CountedTotals(NamedTuple):
    """The trades of a wallet, the conditions it traded in, and the collateral of its trades."""

    trades: int
    markets: int
    volume: int


class ChainFigures:
    """What all logs up to a block add up to. Amounts are in base units."""

    def __init__(self, contracts: ReadContracts, spill: SpillFile) -> None:
        self.contracts = contracts
        self.spill = spill
        self.balances: VersionedRows[Holding, int] = VersionedRows(spill, "balances", 2, int, 0)
        self.locked: VersionedRows[str, int] = VersionedRows(spill, "locked", 1, int, 0)
        self.released: VersionedRows[str, int] = VersionedRows(spill, "released", 1, int, 0)
        self.positions: SpilledRows[Holding, CountedPosition] = spill.mapping(
            "positions", 2, CountedPosition, NOTHING_HELD
        )
        self.changes: SpilledRows[tuple[str, str, int], CountedChange] = spill.mapping(
            "changes", 3, CountedChange
        )
        self.last_changes: SpilledRows[Holding, tuple[int, int, CountedPosition]] = spill.mapping(
            "last_changes", 2, tuple[int, int, CountedPosition]
        )
        self.conditions: SpilledRows[str, CountedCondition] = spill.mapping(
            "conditions", 1, CountedCondition
        )
        self.condition_by_question: SpilledRows[str, str] = spill.mapping("questions", 1, str)
        self.outcomes: SpilledRows[str, tuple[str, bool]] = spill.mapping(
            "outcomes", 1, tuple[str, bool]
        )
        self.payouts: SpilledRows[str, CountedPayout] = spill.mapping("payouts", 1, CountedPayout)
        self.prices: SpilledRows[str, tuple[int, int]] = spill.mapping("prices", 1, tuple[int, int])
        self.acts: SpilledRows[Place, tuple[Any, ...]] = spill.mapping("acts", 2, tuple[Any, ...])
        self.fills: SpilledRows[Place, tuple[Any, ...]] = spill.mapping("fills", 2, tuple[Any, ...])
        self.trades: SpilledRows[Place, CountedTrade] = spill.mapping("trades", 2, CountedTrade)
        self.first_trades: SpilledRows[tuple[str, str], int] = spill.mapping("first_trades", 2, int)
        self.totals: VersionedRows[str, CountedTotals] = VersionedRows(
            spill, "totals", 1, CountedTotals, CountedTotals(0, 0, 0)
        )
        self.allowances: VersionedRows[tuple[str, str, bool], int] = VersionedRows(
            spill, "allowances", 3, int, 0
        )
        self.wallets_read: SpilledRows[str, bool] = spill.mapping("wallets_read", 1, bool)
        self.canceled: SpilledRows[Place, tuple[str, str]] = spill.mapping(
            "canceled", 2, tuple[str, str]
        )
        self.stops: SpilledRows[tuple[int, int, int], tuple[str, str, int]] = spill.mapping(
            "stops", 3, tuple[str, str, int]
        )
        self.answers: SpilledRows[Place, tuple[Any, ...]] = spill.mapping(
            "answers", 2, tuple[Any, ...]
        )
        self.missing_txs: SpilledRows[str, int] = spill.mapping("missing_txs", 1, int)
        """The blocks of transactions that trades have and the logs do not, as far as the node was asked."""
        self._before_block: dict[Holding, CountedPosition] = {}

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

    def set_held(self, wallet: str, cash: int, allowances: Mapping[tuple[str, bool], int]) -> None:
        """Set what a wallet that is read from the chain holds and allows; its history is not known."""
        self.wallets_read[wallet] = True
        self.balances.now[wallet, CASH] = cash
        for (spender, is_collateral), units in allowances.items():
            self.allowances.now[wallet, spender, is_collateral] = units

    def lock(self, condition: str, units: int) -> None:
        """Add to the open interest of a condition."""
        self.locked[condition] = max(0, min(self.locked[condition] + units, UNITS_MAX))

    def convert(self, condition: str, units: int) -> None:
        """Take converted No tokens off the open interest, as long as the condition has not ended with Yes."""
        payout = self.payouts.get(condition)
        if payout is None or payout.yes == 0:
            self.lock(condition, -units)
            self.released[condition] = min(self.released[condition] + units, UNITS_MAX)

    def add_condition(self, condition_id: str, condition: CountedCondition) -> None:
        """Add a condition, and its tokens."""
        self.conditions[condition_id] = condition
        if condition.oracle == self.contracts.adapter:
            self.condition_by_question[condition.question] = condition_id
        self.outcomes[condition.yes] = condition_id, True
        self.outcomes[condition.no] = condition_id, False

    def set_position(self, holding: Holding, position: CountedPosition) -> None:
        """Set a position within a block."""
        self._before_block.setdefault(holding, self.positions[holding])
        self.positions[holding] = position

    def add_trade(self, place: Place, trade: CountedTrade) -> None:
        """Add a trade of a wallet."""
        self.trades[place] = trade
        wallet, condition, cost = trade
        before = self.totals[wallet]
        is_first = (wallet, condition) not in self.first_trades
        if is_first:
            self.first_trades[wallet, condition] = place[0]
        self.totals[wallet] = CountedTotals(
            before.trades + 1, before.markets + is_first, before.volume + cost
        )

    def close_block(self, number: int, at_s: int) -> None:
        """Keep each value and position that differs from the one before the block."""
        for versioned in (self.balances, self.locked, self.released, self.totals, self.allowances):
            versioned.close_block(number)
        for holding, before in self._before_block.items():
            now = self.positions[holding]
            if now != before:
                self.changes[*holding, number] = CountedChange(at_s, now)
                self.last_changes[holding] = number, at_s, now
        self._before_block.clear()

"""The comparison of the tables with the figures of the chain: every row of each, in both directions."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.recounted_standings import RecountedStandings
from foretell.store.queries.index_tables import IndexTables

DIFFERENCES_NAMED_MAX: Final = 100
"""The most differences that a report names; it counts all of them."""


@dataclass(frozen=True, slots=True)
class DataDifference:
    """A row of a table that is not what the chain says; None stands for no row."""

    table: str
    key: Hashable
    of_chain: Any
    of_table: Any


@dataclass(slots=True)
class DataReport:
    """What was compared, and what differs."""

    block_number: int
    block_hash: str
    rows: Counter[str] = field(default_factory=Counter)
    wallets: set[str] = field(default_factory=set)
    found: int = 0
    differences: list[DataDifference] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether every row is what the chain says."""
        return not self.found

    def compare(self, table: str, of_chain: Mapping[Any, Any], of_table: Mapping[Any, Any]) -> None:
        """Add the comparison of a table; rows of nothing must have been left out."""
        keys = of_chain.keys() | of_table.keys()
        self.rows[table] = len(keys)
        for key in sorted(keys, key=repr):
            counted, kept = of_chain.get(key), of_table.get(key)
            if counted != kept:
                self.found += 1
                if len(self.differences) < DIFFERENCES_NAMED_MAX:
                    self.differences.append(DataDifference(table, key, counted, kept))


def compare_all(figures: ChainFigures, tables: IndexTables, report: DataReport) -> None:
    """Compare every table."""
    _compare_conditions(figures, tables, report)
    _compare_wallets(figures, tables, report)
    _compare_acts(figures, tables, report)
    _compare_sums(figures, tables, report)


def _compare_conditions(figures: ChainFigures, tables: IndexTables, report: DataReport) -> None:
    report.compare(
        "conditions",
        {
            condition_id: (each.oracle, each.question, each.yes, each.no)
            for condition_id, each in figures.conditions.items()
        },
        {
            row.condition_id: (row.oracle, row.question_id, row.token_yes, row.token_no)
            for row in tables.rows["conditions"]
        },
    )
    report.compare(
        "payouts",
        figures.payouts,
        {row.condition_id: (row.payout_yes, row.payout_no) for row in tables.rows["payouts"]},
    )
    report.compare(
        "locked_collateral",
        _without_zeros(figures.locked),
        _without_zeros({row.condition_id: row.units for row in tables.rows["locked_collateral"]}),
    )


def _compare_wallets(figures: ChainFigures, tables: IndexTables, report: DataReport) -> None:
    report.compare(
        "balances",
        _without_zeros(figures.balances),
        _without_zeros({(row.wallet, row.asset): row.units for row in tables.rows["balances"]}),
    )
    report.compare(
        "positions",
        {
            holding: (*_cells(changes[-1].position), changes[-1].at_s, changes[-1].block)
            for holding, changes in figures.changes.items()
            if changes
        },
        {
            (row.wallet, row.token_id): (
                *(row.size_units, row.cost_units, row.bought_units, row.spent_units),
                *(row.realized_units, row.changed_at_s, row.block_number),
            )
            for row in tables.rows["positions"]
        },
    )
    report.compare(
        "allowances",
        _without_zeros(figures.allowances),
        _without_zeros(
            {
                (row.wallet, row.spender, row.is_collateral): row.units
                for row in tables.rows["allowances"]
            }
        ),
    )
    report.wallets.update(wallet for wallet, _ in figures.balances)


def _compare_acts(figures: ChainFigures, tables: IndexTables, report: DataReport) -> None:
    report.compare("activities", figures.acts, _by_place(tables, "activities"))
    report.compare("exchange_fills", figures.fills, _by_place(tables, "exchange_fills"))
    report.compare(
        "canceled_orders",
        figures.canceled,
        {
            (row.block_number, row.log_index): (row.exchange, row.order_id)
            for row in tables.rows["canceled_orders"]
        },
    )
    report.compare(
        "raised_nonces",
        figures.stops,
        {
            (row.block_number, row.log_index, row.part): (row.exchange, row.maker, row.nonce)
            for row in tables.rows["raised_nonces"]
        },
    )
    first = {(trade.wallet, trade.condition): trade.block for trade in reversed(figures.trades)}
    report.compare(
        "traded_markets",
        first,
        {(row.wallet, row.condition_id): row.block_number for row in tables.rows["traded_markets"]},
    )
    counts = Counter(trade.wallet for trade in figures.trades)
    markets = Counter(wallet for wallet, _ in first)
    volumes = Counter[str]()
    for trade in figures.trades:
        volumes[trade.wallet] += trade.cost
    report.compare(
        "trading_totals",
        {wallet: (count, markets[wallet], volumes[wallet]) for wallet, count in counts.items()},
        {
            row.wallet: (row.trades, row.markets, row.volume_units)
            for row in tables.rows["trading_totals"]
        },
    )


def _compare_sums(figures: ChainFigures, tables: IndexTables, report: DataReport) -> None:
    sums = RecountedStandings(figures, tables.rows["ranking_cursors"], tables.rows["ranking_marks"])
    report.compare(
        "standings",
        sums.standings(),
        {
            (row.period, row.category, row.wallet): (row.volume_units, row.gain_units)
            for row in tables.rows["standings"]
        },
    )
    report.compare(
        "wins",
        sums.wins(),
        {
            (row.period, row.wallet, row.token_id): (row.category, row.realized_units)
            for row in tables.rows["wins"]
            if sums.is_counted(row.wallet, row.token_id)
        },
    )


def _by_place(tables: IndexTables, name: str) -> dict[tuple[int, int], tuple[object, ...]]:
    return {(row.block_number, row.log_index): tuple(row[3:]) for row in tables.rows[name]}


def _cells(position: Any) -> tuple[int, ...]:
    return position.size, position.cost, position.bought, position.spent, position.realized


def _without_zeros(units: Mapping[Any, int]) -> dict[Any, int]:
    return {key: each for key, each in units.items() if each}

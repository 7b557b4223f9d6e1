"""The tables of leaderboards of the live generation: standings, ranks, wins, and the marks and cursors behind them."""

from typing import Any, NamedTuple

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.compared_table import ComparedTable
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.leaderboards.cursor_ages import compare_cursors
from foretell.reconciliation.leaderboards.marks import RightMark, count_marks
from foretell.reconciliation.leaderboards.rank_counts import count_ranks
from foretell.reconciliation.leaderboards.standings import (
    CountedMark,
    Marks,
    PeriodEnd,
    RecountedStandings,
    StandingKey,
)
from foretell.reconciliation.plain_classes import days_of
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_sums
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import (
    rank_counts,
    rank_parts,
    rank_ties,
    ranking_cursors,
    ranking_marks,
    standings,
    wins,
)


class CountedLeaderboards(NamedTuple):
    """The tables of leaderboards, what the others follow from first; and the volume and the gain of each standing."""

    tables: tuple[ComparedTable, ...]
    sums: SpilledRows[StandingKey, tuple[int, int]]


async def count_leaderboards(
    figures: ChainFigures, spill: SpillFile, tx: Transaction, live: int, report: DataReport
) -> CountedLeaderboards:
    """Compare the cursors, and return the tables to compare row by row."""
    end_by_period: dict[int, PeriodEnd] = {}
    async for page in load_sums(tx, ranking_cursors, live):
        end_by_period |= {
            _days(row): PeriodEnd(row.block_number, row.at_s, row.market_id) for row in page
        }
    marks: Marks = spill.mapping("marks", 2, CountedMark)
    async for page in load_sums(tx, ranking_marks, live):
        for row in page:
            following = row.next_price, row.next_category, row.done_wallet
            mark = CountedMark(row.price, row.category, row.seen_ms, *following)
            marks[_days(row), row.condition_id] = mark
    recounted = RecountedStandings(figures, end_by_period, marks)
    sums: SpilledRows[StandingKey, tuple[int, int]] = spill.mapping(
        "standing_sums", 3, tuple[int, int], (0, 0)
    )
    recounted.add_standings(sums)
    await compare_cursors(tx, end_by_period, recounted.oldest_left, report)
    right_marks = await count_marks(figures, tx, spill, end_by_period, marks)
    compared_marks = ComparedTable(
        ranking_marks,
        right_marks,
        lambda row: (_days(row), row.condition_id),
        lambda row: RightMark(row.price, row.category, row.next_category),
    )
    compared_sums = ComparedTable(
        standings,
        sums,
        lambda row: (_days(row), row.category, row.wallet),
        lambda row: (row.volume_units, row.gain_units),
        lambda units: units if any(units) else None,
    )
    counts = await _counts(tx, spill, sums, live)
    tables = compared_marks, compared_sums, *counts, _wins(spill, recounted)
    return CountedLeaderboards(tables, sums)


async def _counts(
    tx: Transaction, spill: SpillFile, sums: SpilledRows[StandingKey, tuple[int, int]], live: int
) -> tuple[ComparedTable, ...]:
    """Return the tables of the numbers of standings."""
    counted = await count_ranks(tx, spill, sums, live)
    return tuple(
        ComparedTable(table, counts, _count_key, lambda row: row.wallets)
        for table, counts in (
            (rank_counts, counted.buckets),
            (rank_parts, counted.parts),
            (rank_ties, counted.ties),
        )
    )


def _wins(spill: SpillFile, recounted: RecountedStandings) -> ComparedTable:
    """Return the table of wins, but those of positions that the sums have not come to."""
    counted = spill.mapping("counted_wins", 3, tuple[str, int])
    for key, win in recounted.wins():
        counted[key] = win
    return ComparedTable(
        wins,
        counted,
        lambda row: (_days(row), row.wallet, row.token_id),
        lambda row: (
            (row.category, row.realized_units)
            if recounted.is_counted(row.wallet, row.token_id)
            else None
        ),
    )


def _days(row: Any) -> int:
    return days_of(row.period)


def _count_key(row: Any) -> tuple[Any, ...]:
    return _days(row), *row[1:-1]

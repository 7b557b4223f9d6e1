"""The rows of a generation of sums: their number, and the removal of those that nobody reads, in small parts."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.index.generations import (
    KEYS_PER_GENERATION,
    NOT_BEGUN,
    KeptGenerations,
    hold_kept,
    of_generation,
)
from foretell.store.index.trading_totals import tables_of
from foretell.store.tables import (
    rank_counts,
    rank_parts,
    rank_ties,
    ranking_cursors,
    ranking_marks,
    standings,
    wins,
)

BY_PERIOD: Final = (
    ranking_cursors,
    ranking_marks,
    standings,
    rank_counts,
    rank_parts,
    rank_ties,
    wins,
)


async def remove_unread(tx: Transaction, rows_max: int) -> int:
    """Delete at most so many rows that belong to neither the live nor the next generation; return how many."""
    kept = await hold_kept(tx)
    for table in BY_PERIOD:
        for is_unread in _gaps(table.c.period, kept.numbers):
            if removed := await _remove(tx, table, is_unread, rows_max):
                return removed
    for table in _unread_totals(kept):
        if removed := await _remove(tx, table, sa.true(), rows_max):
            return removed
    return 0


def tables_with(generation: int) -> Sequence[sa.Table]:
    """Return the tables that have rows of a generation."""
    return *BY_PERIOD, *tables_of(generation).all


async def count_rows(tx: Transaction, table: sa.Table, generation: int) -> int:
    """Return the number of rows of a generation in a table."""
    count = sa.select(sa.func.count()).select_from(table)
    return int(await tx.scalar(count.where(of_generation(table, generation))))


def _gaps(key: sa.Column[int], kept: Sequence[int]) -> list[sa.ColumnElement[bool]]:
    """Return the ranges of keys before, between and behind these generations: an index has each in one place."""
    firsts = [each * KEYS_PER_GENERATION for each in sorted(kept)]
    ends = [first + KEYS_PER_GENERATION for first in firsts]
    between = [
        sa.and_(key >= end, key < first) for end, first in zip(ends, firsts[1:], strict=False)
    ]
    return [key < firsts[0], *between, key >= ends[-1]]


def _unread_totals(kept: KeptGenerations) -> Sequence[sa.Table]:
    """Return the tables of totals that no generation uses, or one that has not begun to."""
    following, used = kept.following, {kept.live % 2}
    if following is not None and following.block_number != NOT_BEGUN:
        used.add(following.generation % 2)
    return [table for parity in {0, 1} - used for table in tables_of(parity).all]


async def _remove(
    tx: Transaction, table: sa.Table, is_unread: sa.ColumnElement[bool], rows_max: int
) -> int:
    keys = list(table.primary_key.columns)
    rows = await tx.all(sa.select(*keys).where(is_unread).limit(rows_max))
    one = table.delete().where(*(each == sa.bindparam(f"of_{each.name}") for each in keys))
    await tx.execute_rows(one, [tuple(row) for row in rows])
    return len(rows)

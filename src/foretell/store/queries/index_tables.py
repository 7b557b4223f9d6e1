"""The rows of the index at one instant, in pages, for the comparison with the chain."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.index.generations import of_generation
from foretell.store.tables import blocks

ROWS_PER_PAGE: Final = 1_000
_EVERY: Final = sa.true()


class IndexedBlock(NamedTuple):
    """The block that the tables are of."""

    block_number: int
    block_hash: str


async def load_indexed_block(tx: Transaction) -> IndexedBlock | None:
    """Return the newest block of the index, or None before the first."""
    newest = await tx.first(
        sa.select(blocks.c.block_number, blocks.c.block_hash)
        .order_by(blocks.c.block_number.desc())
        .limit(1)
    )
    return None if newest is None else IndexedBlock(newest.block_number, newest.block_hash)


async def load_page(
    tx: Transaction,
    table: sa.Table,
    after: sa.Row[Any] | None = None,
    is_wanted: sa.ColumnElement[bool] = _EVERY,
) -> Sequence[sa.Row[Any]]:
    """Return the next rows of a table in the order of its primary key: behind a row, or from the first on."""
    key = list(table.primary_key.columns)
    page = sa.select(table).where(is_wanted).order_by(*key).limit(ROWS_PER_PAGE)
    if after is not None:
        last = [sa.literal(getattr(after, column.name), column.type) for column in key]
        page = page.where(sa.tuple_(*key) > sa.tuple_(*last))
    return await tx.all(page)


async def load_pages(
    tx: Transaction, table: sa.Table, is_wanted: sa.ColumnElement[bool] = _EVERY
) -> AsyncIterator[Sequence[sa.Row[Any]]]:
    """Yield all rows of a table in such pages, or those that are wanted."""
    rows = await load_page(tx, table, None, is_wanted)
    while rows:
        yield rows
        rows = await load_page(tx, table, rows[-1], is_wanted)


def load_sums(
    tx: Transaction, table: sa.Table, generation: int
) -> AsyncIterator[Sequence[sa.Row[Any]]]:
    """Yield the rows of a generation in such pages; those of a table without one are of all."""
    return load_pages(tx, table, of_generation(table, generation))

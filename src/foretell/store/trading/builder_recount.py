"""The volumes of builders, added up again beside those that are read, while the engine goes on.

Steps add the trades of one market after the other to the `next_` tables, by the code of the engine. The engine adds what
it matches, and takes off what fails, in these tables as well if the trade is among those that are counted. So they have
the sums of all counted trades at every commit. Once that is all trades, steps make the rows that are read equal to them,
and the engine changes both alike from then on. First the days of wallets: the engine finds in these how many wallets a
day gains or loses. Each step holds the lock of the sums.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.errors.storage import RebuildRunning
from foretell.domain.exchange.trade import TradeStatus
from foretell.store.database import ROWS_PER_STATEMENT_MAX, Transaction
from foretell.store.lookups import Key, load_rows
from foretell.store.many_rows import upsert_many
from foretell.store.tables import builder_recounts, trades
from foretell.store.trading.builder_days import (
    KEPT,
    NEXT,
    add_traded,
    delete_rows,
    has_builders,
    hold_builder_sums,
)
from foretell.store.trading.builder_parts import SignedTrade, brought, load_builders_of
from foretell.store.trading.trades import with_fills

TRADES_PER_STEP_MAX: Final = 200
"""The most trades that a step counts, each with at most as many fills as a trade has.

Those that one order matched are counted together, also if they are more.
"""

SWAPS: Final = tuple(
    (kept, following, walked)
    for kept, following in zip(KEPT, NEXT, strict=True)
    for walked in (kept, following)
)
"""The tables in the order in which they are made equal: the rows of the first are mended or deleted, then missing ones added."""

_NAME: Final = "builders"
_PLACE: Final = (trades.c.condition_id, trades.c.matched_at_ms, trades.c.sequence)
"""The place of a trade: an index has trades in this order, and the parts of a trade have its place."""
_BEFORE_ALL: Final = ("", 0, 0)


async def begin_recount(tx: Transaction) -> None:
    """Begin before the first trade, with empty tables.

    Raises RebuildRunning when another process has begun.
    """
    await hold_builder_sums(tx)
    if await _load(tx) is not None:
        raise RebuildRunning
    await _record(tx, _BEFORE_ALL, is_complete=False)


async def end_recount(tx: Transaction) -> None:
    """Have the engine change the sums that are read alone."""
    await hold_builder_sums(tx)
    await tx.execute(builder_recounts.delete())


async def remove_counted(tx: Transaction, rows_max: int) -> int:
    """Delete at most so many rows that an ended recount has left; return how many.

    Raises RebuildRunning when another process has begun.
    """
    await hold_builder_sums(tx)
    if await _load(tx) is not None:
        raise RebuildRunning
    for table in NEXT:
        rows = await tx.all(sa.select(*table.primary_key.columns).limit(rows_max))
        if rows:
            await delete_rows(tx, table, [tuple(row) for row in rows])
            return len(rows)
    return 0


async def count_trades(tx: Transaction, trades_max: int) -> int:
    """Count the next trades, and return how many; if none is left, that is noted.

    Raises RebuildRunning when another process has ended this recount.
    """
    await hold_builder_sums(tx)
    after = await _load_own(tx)
    rows = await _load_next_trades(tx, after, trades_max) if await has_builders(tx) else []
    if not rows:
        await _record(tx, _BEFORE_ALL, is_complete=True)
        return 0
    known = await with_fills(tx, rows)
    signed = [SignedTrade(row.trade, 1) for row in known if row.status is not TradeStatus.FAILED]
    traded = brought(signed, await load_builders_of(tx, signed))
    if traded:
        await add_traded(tx, traded, NEXT)
    await _record(tx, _place_of(rows[-1]), is_complete=False)
    return len(rows)


async def swap_rows(
    tx: Transaction,
    tables: tuple[sa.Table, sa.Table, sa.Table],
    after: Key | None,
    rows_max: int,
) -> Sequence[Key]:
    """Make the next rows that are read equal to those that were counted, and return their keys.

    `tables` is one of `SWAPS`. A row that is exact already is not written.

    Raises RebuildRunning when another process has ended this recount, or has begun another one.
    """
    kept, following, walked = tables
    await hold_builder_sums(tx)
    if not (await _load_own(tx)).is_complete:
        raise RebuildRunning
    columns = list(walked.primary_key.columns)
    page = sa.select(*columns).order_by(*columns).limit(rows_max)
    if after is not None:
        page = page.where(sa.tuple_(*columns) > _literals(columns, after))
    keys = [tuple(row) for row in await tx.all(page)]
    counted = {tuple(row) for row in await load_rows(tx, following, following.primary_key, keys)}
    present = {tuple(row) for row in await load_rows(tx, kept, kept.primary_key, keys)}
    await upsert_many(tx, kept, sorted(counted - present))
    width = len(columns)
    gone = {row[:width] for row in present} - {row[:width] for row in counted}
    await delete_rows(tx, kept, gone)
    return keys


async def load_counted(tx: Transaction, trade_ids: Collection[str]) -> Collection[str]:
    """Return those of these trades that a recount has counted; the caller holds the sums."""
    recount = await _load(tx)
    if recount is None:
        return ()
    if recount.is_complete:
        return trade_ids
    ids, found = sorted(trade_ids), set()
    is_counted = sa.tuple_(*_PLACE) <= _literals(_PLACE, _place_of(recount))
    for start in range(0, len(ids), ROWS_PER_STATEMENT_MAX):
        is_wanted = trades.c.trade_id.in_(ids[start : start + ROWS_PER_STATEMENT_MAX])
        rows = await tx.all(sa.select(trades.c.trade_id).where(is_wanted, is_counted))
        found |= {row.trade_id for row in rows}
    return found


async def _load_next_trades(
    tx: Transaction, after: sa.Row[Any], trades_max: int
) -> Sequence[sa.Row[Any]]:
    """Return trades in the order of their places, with all of the last place."""
    is_next = sa.tuple_(*_PLACE) > _literals(_PLACE, _place_of(after))
    page = sa.select(trades).where(is_next).order_by(*_PLACE).limit(trades_max)
    rows = await tx.all(page)
    if len(rows) < trades_max:
        return rows
    last = _place_of(rows[-1])
    is_last = sa.tuple_(*_PLACE) == _literals(_PLACE, last)
    return [
        *(row for row in rows if _place_of(row) != last),
        *await tx.all(sa.select(trades).where(is_last)),
    ]


async def _load(tx: Transaction) -> sa.Row[Any] | None:
    return await tx.first(sa.select(builder_recounts))


async def _load_own(tx: Transaction) -> sa.Row[Any]:
    recount = await _load(tx)
    if recount is None:
        raise RebuildRunning
    return recount


async def _record(tx: Transaction, place: Key, *, is_complete: bool) -> None:
    await tx.upsert_rows(builder_recounts, [(_NAME, *place, is_complete)])


def _place_of(row: sa.Row[Any]) -> Key:
    return row.condition_id, row.matched_at_ms, row.sequence


def _literals(columns: Sequence[sa.Column[Any]], values: Key) -> sa.Tuple:
    literals = zip(values, columns, strict=True)
    return sa.tuple_(*(sa.literal(value, column.type) for value, column in literals))

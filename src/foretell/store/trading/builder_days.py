"""The volumes of builders, by day and wallet, by day, and of all days; written by the engine.

Engines of several shards add to the same rows, one after the other: the last day of a wallet is not known while
another engine adds days. So does a rebuild, which adds all of them up again in tables of its own (`builder_recount.py`).
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
import structlog

from foretell.domain.portfolio.builder_volumes import (
    NO_SUMS,
    BuilderSums,
    BuilderUser,
    TradedFills,
    UserDay,
    sum_changes,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index import lock_waits
from foretell.store.lookups import Key, load_newest, load_rows
from foretell.store.many_rows import upsert_many
from foretell.store.tables import (
    builder_days,
    builder_totals,
    builder_users,
    next_builder_days,
    next_builder_totals,
    next_builder_users,
)
from foretell.store.tables.trading import ATTRIBUTED
from foretell.store.wide_sums import HALF_BITS

log = structlog.get_logger(__name__)

_LOCK: Final = 0x6275696C
"""The lock of PostgreSQL that a transaction holds while it adds; SQLite has one writer."""

_ORDER_ID: Final = sa.column("order_id", sa.Text)
_CODES: Final = sa.table("orders", _ORDER_ID, sa.column("attributed_code", sa.Text))
"""The columns of an order that say who brought it."""
_ANY_CODE: Final = (
    sa.select(_CODES.c.attributed_code)
    .where(ATTRIBUTED)
    .order_by(_CODES.c.attributed_code)
    .limit(1)
)
"""It reads one entry of the index of attributed orders."""
_OF_BUILDER: Final = _ANY_CODE.where(
    _CODES.c.attributed_code == sa.bindparam("builder", type_=sa.Text)
)


class BuilderTables(NamedTuple):
    """The tables of the days of wallets, of days, and of all days."""

    users: sa.Table
    days: sa.Table
    totals: sa.Table


KEPT: Final = BuilderTables(builder_users, builder_days, builder_totals)
NEXT: Final = BuilderTables(next_builder_users, next_builder_days, next_builder_totals)
"""Those in which a rebuild adds up what `KEPT` should have."""


async def has_builders(tx: Transaction) -> bool:
    """Return whether any order names a builder."""
    return await tx.first(_ANY_CODE) is not None


async def has_orders(tx: Transaction, builder: Bytes32) -> bool:
    """Return whether any order names this builder."""
    return await tx.scalar(_OF_BUILDER, {"builder": builder}) is not None


async def load_builders(tx: Transaction, order_ids: Collection[str]) -> Mapping[str, Bytes32]:
    """Return the builders of orders by order id; orders without one are left out."""
    rows = await load_rows(tx, _CODES, (_ORDER_ID,), [(each,) for each in order_ids])
    return {row.order_id: Bytes32(row.attributed_code) for row in rows if row.attributed_code}


async def add_traded(
    tx: Transaction, changes: Mapping[UserDay, TradedFills], tables: BuilderTables = KEPT
) -> None:
    """Add what wallets traded on days with orders of builders; what is negative is taken off.

    A row without fills is deleted, as if it had never been. Sums that have less than is taken off were written by another
    release, or are damaged: they end at nothing, and `foretell index rebuild` mends them. Trades are written all the same.

    Raises RowsLocked when another engine has the lock for too long.
    """
    await hold_builder_sums(tx)
    keys, users = sorted(changes), {BuilderUser(*key[:2]) for key in changes}
    rows = await load_rows(tx, tables.users, tables.users.primary_key.columns, keys)
    before = {UserDay._make(row[:3]): row.fills for row in rows}
    last_before = await _load_last_days(tx, tables, users)
    after = {key: (max(before.get(key, 0) + changes[key].fills, 0),) for key in keys}
    await _write(tx, tables.users, after)
    last_after = await _load_last_days(tx, tables, users)
    sums = sum_changes(changes, before, last_before, last_after)
    await _add_sums(tx, tables.days, sums.by_day)
    totals = {(builder,): added for builder, added in sums.by_builder.items()}
    await _add_sums(tx, tables.totals, totals)


async def hold_builder_sums(tx: Transaction) -> None:
    """Hold the lock of the sums, so that no other transaction changes them until the commit.

    Raises RowsLocked when another one has them for too long.
    """
    await lock_waits.hold_lock(tx, _LOCK)


async def delete_rows(tx: Transaction, table: sa.Table, keys: Collection[Key]) -> None:
    """Delete the rows with these keys."""
    await tx.execute_rows(_deletion(table), list(keys))


async def _load_last_days(
    tx: Transaction, tables: BuilderTables, users: Collection[BuilderUser]
) -> Mapping[BuilderUser, int]:
    rows = await load_newest(tx, tables.users, users)
    return {BuilderUser(Bytes32(row.builder_code), Address(row.wallet)): row.day for row in rows}


async def _add_sums(tx: Transaction, table: sa.Table, added: Mapping[Any, BuilderSums]) -> None:
    """Add to the sums of a table, whose volumes are in halves."""
    columns = table.primary_key.columns
    before = {
        tuple(row[: len(columns)]): _sums(*row[len(columns) :])
        for row in await load_rows(tx, table, columns, added)
    }
    after: dict[Key, tuple[int, ...]] = {}
    for key in sorted(added):
        sums = before.get(tuple(key), NO_SUMS).plus(added[key])
        if min(sums) < 0:
            log.error(
                "a builder's sums are too low: foretell index rebuild mends them", builder=key[0]
            )
        volume, *rest = (max(each, 0) for each in sums)
        after[key] = (*divmod(volume, 1 << HALF_BITS), *rest)
    await _write(tx, table, after)


def _sums(volume_high: int, volume_low: int, *rest: int) -> BuilderSums:
    return BuilderSums((volume_high << HALF_BITS) + volume_low, *rest)


async def _write(tx: Transaction, table: sa.Table, cells: Mapping[Any, tuple[int, ...]]) -> None:
    """Write rows with these values behind their keys, as many as the table has; those without fills are deleted."""
    keys, width = len(table.primary_key.columns), len(table.c)
    fills = list(table.c.keys()).index("fills") - keys
    kept = [(*key, *values)[:width] for key, values in cells.items() if values[fills]]
    await upsert_many(tx, table, kept)
    await delete_rows(tx, table, [tuple(key) for key, values in cells.items() if not values[fills]])


@lru_cache
def _deletion(table: sa.Table) -> sa.Delete:
    same = [column == sa.bindparam(column.name) for column in table.primary_key.columns]
    return table.delete().where(*same)

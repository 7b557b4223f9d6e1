"""Balances, allowances and collateral of conditions, as of the last indexed block; written by the indexer.

A reader that follows changes stores the number and the hash of the last block it has read. When that
block has another hash now, a reorg has undone what it read, and may have deleted rows: the reader must
load all the wallets that it knows again.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.index.history_tables import (
    ALLOWANCES,
    BALANCES,
    LOCKED_COLLATERAL,
    RELEASED_COLLATERAL,
    record_states,
)
from foretell.store.lookups import load_rows
from foretell.store.tables import (
    allowances,
    balance_changes,
    balances,
    locked_collateral,
    markets,
    payouts,
    released_collateral,
)

TOKENS_LOOKED_MAX: Final = 1_000
"""Tokens at which a look for one that has a value ends."""


class Balance(NamedTuple):
    """A wallet's balance of an asset since a block; a missing row means zero."""

    wallet: Address
    asset: AssetId
    units: int
    block_number: int


class Allowance(NamedTuple):
    """The amount that a spender may move since a block, of a wallet's collateral or of its tokens.

    The largest amount, 2^63 - 1, means no limit; a missing row means zero.
    """

    wallet: Address
    spender: Address
    is_collateral: bool
    units: int
    block_number: int


class LockedCollateral(NamedTuple):
    """The collateral locked for a condition: split, less merged, redeemed and released."""

    condition_id: Bytes32
    units: int
    block_number: int


class ReleasedCollateral(NamedTuple):
    """The collateral that conversions have released of a condition; its resolution to Yes locks it again."""

    condition_id: Bytes32
    units: int
    block_number: int


async def record_balances(tx: Transaction, changes: Sequence[Balance]) -> None:
    """Store balances after blocks, in the order of the blocks."""
    await record_states(tx, BALANCES, changes)


async def record_allowances(tx: Transaction, changes: Sequence[Allowance]) -> None:
    """Store allowances after blocks, in the order of the blocks."""
    await record_states(tx, ALLOWANCES, changes)


async def record_locked(tx: Transaction, changes: Sequence[LockedCollateral]) -> None:
    """Store locked collateral after blocks, in the order of the blocks."""
    await record_states(tx, LOCKED_COLLATERAL, changes)


async def is_holder(
    tx: Transaction, wallets: Collection[Address], units: int, since_block: int | None = None
) -> bool:
    """Return whether one of these wallets holds as many units of an asset that has a value, and held them all the time.

    That is the collateral, or an outcome token of a listed market that is open or pays for it; of many tokens the first
    `TOKENS_LOOKED_MAX` are looked at, since anybody may send a wallet others. Without a block, what is held now counts
    alone.
    """
    least, columns = max(units, 1), balances.c
    large = sa.and_(columns.wallet.in_(sorted(wallets)), columns.units >= least)
    tokens = sa.select(columns.wallet, columns.asset).where(large, columns.asset != COLLATERAL)
    looked = tokens.limit(TOKENS_LOOKED_MAX).subquery()
    of_tokens = sa.and_(columns.wallet == looked.c.wallet, columns.asset == looked.c.asset)
    was_held = sa.true() if since_block is None else _was_held(least, since_block)
    for held in (
        sa.select(columns.wallet).where(large, columns.asset == COLLATERAL),
        sa.select(columns.wallet).join(looked, of_tokens).where(_has_value()),
    ):
        if await tx.first(held.where(was_held).limit(1)) is not None:
            return True
    return False


def _has_value() -> sa.ColumnElement[bool]:
    """Return whether a balance is of a token of a listed market that is not resolved to nothing."""
    of_markets = [
        sa.exists()
        .select_from(markets.outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id))
        .where(token == balances.c.asset, sa.func.coalesce(payout, 1) > 0)
        for token, payout in (
            (markets.c.token_yes, payouts.c.payout_yes),
            (markets.c.token_no, payouts.c.payout_no),
        )
    ]
    return sa.or_(*of_markets)


def _was_held(units: int, since_block: int) -> sa.ColumnElement[bool]:
    """Return whether a balance was as large after this block, and after each one since."""
    changes = balance_changes.alias()
    of_balance = sa.and_(changes.c.wallet == balances.c.wallet, changes.c.asset == balances.c.asset)
    number = changes.c.block_number
    before = sa.select(changes.c.units).where(of_balance, number <= since_block)
    was_less = sa.exists().where(of_balance, number > since_block, changes.c.units < units)
    first = before.order_by(number.desc()).limit(1).scalar_subquery()
    return sa.and_(first >= units, sa.not_(was_less))


async def record_released(tx: Transaction, changes: Sequence[ReleasedCollateral]) -> None:
    """Store released collateral after blocks, in the order of the blocks."""
    await record_states(tx, RELEASED_COLLATERAL, changes)


async def load_balances(
    tx: Transaction, keys: Iterable[tuple[Address, AssetId]]
) -> Sequence[Balance]:
    """Return these balances; a missing one is zero."""
    return [Balance._make(row) for row in await load_rows(tx, balances, balances.primary_key, keys)]


async def load_allowances(
    tx: Transaction, keys: Iterable[tuple[Address, Address, bool]]
) -> Sequence[Allowance]:
    """Return these allowances; a missing one is zero."""
    return [
        Allowance._make(row)
        for row in await load_rows(tx, allowances, allowances.primary_key, keys)
    ]


async def balances_changed(
    tx: Transaction, since_block: int, rows_max: int
) -> AsyncIterator[Sequence[Balance]]:
    """Yield the balances that changed after this block; before all blocks, in parts of at most so many."""
    async for rows in _changed(tx, balances, since_block, rows_max):
        yield [Balance._make(row[: len(Balance._fields)]) for row in rows]


async def allowances_changed(
    tx: Transaction, since_block: int, rows_max: int
) -> AsyncIterator[Sequence[Allowance]]:
    """Yield the allowances that changed after this block; before all blocks, in parts of at most so many."""
    async for rows in _changed(tx, allowances, since_block, rows_max):
        yield [Allowance._make(row[: len(Allowance._fields)]) for row in rows]


async def _changed(
    tx: Transaction, table: sa.Table, since_block: int, rows_max: int
) -> AsyncIterator[Sequence[sa.Row[Any]]]:
    """Yield what changed at once, which the index of blocks finds, or all rows by parts of the table.

    SQLite has its rows in the order of their numbers: in the order of their keys it would read a page for each.
    """
    if since_block != BEFORE_ALL_BLOCKS:
        yield await tx.all(sa.select(table).where(table.c.block_number > since_block))
        return
    key: list[sa.ColumnElement[Any]] = list(table.primary_key.columns)
    if tx.dialect == "sqlite":
        key = [sa.literal_column("rowid", sa.BigInteger)]
    places = [column.label(f"place_{number}") for number, column in enumerate(key)]
    page = sa.select(table, *places).order_by(*key).limit(rows_max)
    rows = await tx.all(page)
    while rows:
        yield rows
        last = zip(rows[-1][-len(key) :], key, strict=True)
        after = sa.tuple_(*[sa.literal(value, column.type) for value, column in last])
        rows = await tx.all(page.where(sa.tuple_(*key) > after))


async def load_allowances_changed(tx: Transaction, since_block: int) -> Sequence[Allowance]:
    """Return the allowances that changed after this block."""
    changed = allowances.c.block_number > since_block
    return [Allowance._make(row) for row in await tx.all(sa.select(allowances).where(changed))]


async def load_collateral_changed(tx: Transaction, since_block: int) -> Sequence[Balance]:
    """Return the collateral balances that changed after this block."""
    changed = sa.and_(balances.c.block_number > since_block, balances.c.asset == COLLATERAL)
    return [Balance._make(row) for row in await tx.all(sa.select(balances).where(changed))]


async def load_holders(
    tx: Transaction, token_ids: Collection[AssetId], *, units_min: int, limit: int
) -> Mapping[AssetId, Sequence[Balance]]:
    """Return the largest balances of each token from `units_min` on, at most `limit` of each.

    The address that keeps the No tokens of conversions is no holder: nobody can redeem them.
    One query reads those of every token, each along its part of the index.
    """
    held: dict[AssetId, list[Balance]] = {}
    if token_ids and limit:
        ids: list[AssetId] | str = list(token_ids)
        if tx.dialect == "sqlite":
            ids = msgspec.json.encode(ids).decode()
        values = {"tokens": ids, "least": max(1, units_min), "rows": limit}
        for row in await tx.all(_HOLDERS[tx.dialect], values):
            held.setdefault(AssetId(row.asset), []).append(Balance._make(row))
    for found in held.values():
        found.sort(key=lambda balance: (balance.units, balance.wallet), reverse=True)
    return held


_BOUNDS: Final = (
    sa.bindparam("burned", NO_TOKEN_BURN, type_=sa.Text),
    sa.bindparam("least", type_=sa.BigInteger),
    sa.bindparam("rows", type_=sa.BigInteger),
)
_HOLDERS: Final = {
    "sqlite": sa.text(
        """SELECT balances.wallet, balances.asset, balances.units, balances.block_number
        FROM json_each(:tokens) AS wanted CROSS JOIN balances WHERE balances.rowid IN (
            SELECT held.rowid FROM balances AS held
            WHERE held.asset = wanted.value AND held.units >= :least AND held.wallet <> :burned
            ORDER BY held.units DESC, held.wallet DESC LIMIT :rows
        )"""
    )
    .bindparams(*_BOUNDS)
    .columns(*balances.c),
    "postgresql": sa.text(
        """SELECT held.wallet, held.asset, held.units, held.block_number
        FROM unnest(:tokens) AS wanted(token) CROSS JOIN LATERAL (
            SELECT * FROM balances
            WHERE asset = wanted.token AND units >= :least AND wallet <> :burned
            ORDER BY units DESC, wallet DESC LIMIT :rows
        ) AS held"""
    )
    .bindparams(*_BOUNDS, sa.bindparam("tokens", type_=postgresql.ARRAY(sa.Text)))
    .columns(*balances.c),
}
"""SQLite has no LATERAL, and finds the rows of a token by a list of their numbers."""


async def load_locked(tx: Transaction, ids: Collection[Bytes32]) -> Sequence[LockedCollateral]:
    """Return the locked collateral of these conditions: their open interest."""
    keys = [(condition_id,) for condition_id in ids]
    rows = await load_rows(tx, locked_collateral, locked_collateral.primary_key, keys)
    return [LockedCollateral._make(row) for row in rows]


async def load_released(tx: Transaction, ids: Collection[Bytes32]) -> Sequence[ReleasedCollateral]:
    """Return what conversions have released of these conditions; a missing one is zero."""
    keys = [(condition_id,) for condition_id in ids]
    rows = await load_rows(tx, released_collateral, released_collateral.primary_key, keys)
    return [ReleasedCollateral._make(row) for row in rows]


async def load_most_locked(tx: Transaction, limit: int) -> Sequence[LockedCollateral]:
    """Return the conditions with the most locked collateral, the largest first."""
    rows = await tx.all(
        sa.select(locked_collateral)
        .order_by(locked_collateral.c.units.desc(), locked_collateral.c.condition_id.desc())
        .limit(limit)
    )
    return [LockedCollateral._make(row) for row in rows]

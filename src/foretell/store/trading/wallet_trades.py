"""Trades that wallets took part in, and those that failed.

A wallet takes part as taker or as maker, and each is an index in the order of time. So a page reads as many rows of
each as it ends at, whatever the history is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import fills, trades
from foretell.store.trading.trades import NEWEST_FIRST, TradeRow, load_trades_by_id, with_fills


class TradeFilter(NamedTuple):
    """A filter for a wallet's trades; None matches every value."""

    trade_id: str | None = None
    condition_id: Bytes32 | None = None
    token_id: str | None = None
    before_s: int | None = None
    after_s: int | None = None
    taker: Address | None = None
    maker: Address | None = None


async def load_wallet_trades(
    tx: Transaction, wallets: Sequence[Address], wanted: TradeFilter, offset: int, limit: int
) -> Sequence[TradeRow]:
    """Return a page of the trades that wallets took part in, the newest first."""
    if not wallets:
        return []
    newest = [
        sa.select(walk(wallet, wanted).limit(offset + limit).subquery())
        for wallet in wallets
        for walk in (_taken, _made)
    ]
    found = sa.union(*newest).subquery()
    columns = found.c
    page = (
        sa.select(columns.trade_id)
        .order_by(columns.matched_at_ms.desc(), columns.sequence.desc(), columns.trade_id)
        .offset(offset)
        .limit(limit)
    )
    ids = [row.trade_id for row in await tx.all(page)]
    row_by_id = {row.trade.trade_id: row for row in await load_trades_by_id(tx, ids)}
    return [row_by_id[trade_id] for trade_id in ids]


async def load_trades_before(
    tx: Transaction, wallet: Address, trade: TradeRow, limit: int
) -> Sequence[TradeRow]:
    """Return the newest trades that a wallet took part in before this one."""
    place = sa.tuple_(trade.trade.matched_at_ms, trade.sequence)
    newest = [
        walk(wallet, TradeFilter())
        .where(sa.tuple_(table.c.matched_at_ms, table.c.sequence) < place)
        .limit(limit)
        for walk, table in ((_taken, trades), (_made, fills))
    ]
    found = {row.trade_id: row for query in newest for row in await tx.all(query)}
    rows = sorted(found.values(), key=lambda row: (row.matched_at_ms, row.sequence), reverse=True)
    ids = [row.trade_id for row in rows[:limit]]
    row_by_id = {row.trade.trade_id: row for row in await load_trades_by_id(tx, ids)}
    return [row_by_id[trade_id] for trade_id in ids]


async def load_failed_trades(
    tx: Transaction, wallets: Sequence[Address], since_ms: int, limit: int
) -> Sequence[TradeRow]:
    """Return trades of wallets that failed to settle since a time, the newest first.

    Few of all trades fail, so they are looked through by their status.
    """
    is_made = sa.exists().where(fills.c.trade_id == trades.c.trade_id, fills.c.maker.in_(wallets))
    query = (
        sa.select(trades)
        .where(
            trades.c.status == TradeStatus.FAILED.value,
            trades.c.matched_at_ms >= since_ms,
            sa.or_(trades.c.taker.in_(wallets), is_made),
        )
        .order_by(*NEWEST_FIRST)
        .limit(limit)
    )
    return await with_fills(tx, await tx.all(query))


def _taken(wallet: Address, wanted: TradeFilter) -> sa.Select[Any]:
    """Return the places of the trades that a wallet took, the newest first."""
    query = sa.select(trades.c.matched_at_ms, trades.c.sequence, trades.c.trade_id).where(
        _named(trades.c.taker, wanted) == wallet, *_of_time(trades, wanted), *_of_trade(wanted)
    )
    return query.order_by(*_order(trades, wanted))


def _made(wallet: Address, wanted: TradeFilter) -> sa.Select[Any]:
    """Return the places of the trades that a wallet made, the newest first."""
    of_trade = _of_trade(wanted)
    made = fills.join(trades, trades.c.trade_id == fills.c.trade_id) if of_trade else fills
    query = (
        sa.select(fills.c.matched_at_ms, fills.c.sequence, fills.c.trade_id)
        .select_from(made)
        .where(_named(fills.c.maker, wanted) == wallet, *_of_time(fills, wanted), *of_trade)
        .distinct()
    )
    return query.order_by(*_order(fills, wanted))


def _named(column: sa.Column[Any], wanted: TradeFilter) -> sa.ColumnElement[Any]:
    """Return a column of wallets; beside the id of a trade, one that no index has."""
    return column if wanted.trade_id is None else column + ""


def _order(table: sa.Table, wanted: TradeFilter) -> list[sa.ColumnElement[Any]]:
    """Return the order of a walk; one trade has none, since it is found by its id and not along the time."""
    if wanted.trade_id is not None:
        return []
    return [table.c.matched_at_ms.desc(), table.c.sequence.desc(), table.c.trade_id]


def _of_time(table: sa.Table, wanted: TradeFilter) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on what the trades and their fills both have."""
    clauses: list[sa.ColumnElement[bool]] = []
    if wanted.trade_id is not None:
        clauses.append(table.c.trade_id == wanted.trade_id)
    if wanted.before_s is not None:
        clauses.append(table.c.matched_at_ms < wanted.before_s * 1000)
    if wanted.after_s is not None:
        clauses.append(table.c.matched_at_ms >= wanted.after_s * 1000)
    return clauses


def _of_trade(wanted: TradeFilter) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on what the trades alone have."""
    clauses: list[sa.ColumnElement[bool]] = []
    if wanted.condition_id is not None:
        clauses.append(trades.c.condition_id == wanted.condition_id)
    if wanted.token_id is not None:
        clauses.append(trades.c.token_id == wanted.token_id)
    if wanted.taker is not None:
        clauses.append(trades.c.taker == wanted.taker)
    if wanted.maker is not None:
        other = fills.alias()
        is_made = sa.and_(other.c.trade_id == trades.c.trade_id, other.c.maker == wanted.maker)
        clauses.append(sa.exists().where(is_made))
    return clauses

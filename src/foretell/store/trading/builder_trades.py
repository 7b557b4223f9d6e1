"""Trades of a builder's orders, and the rates of its fees.

A trade has a row for each order of the builder in it. The rates are written by the operator's command, and
are never changed: newer ones take their place.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.builder_fees import BuilderRates
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import builder_rates, fills, orders, trades
from foretell.store.trading.orders import OrderRow, load_orders
from foretell.store.trading.trades import TradeRow, load_trades_by_id

TAKER_PART: Final = -1
"""The part of the taker's order; that of a maker's is the index of its fill."""


class BuilderTradeFilter(NamedTuple):
    """A filter for a builder's trades; None matches every value."""

    trade_id: str | None = None
    condition_id: Bytes32 | None = None
    token_id: str | None = None
    wallet: Address | None = None
    before_s: int | None = None
    after_s: int | None = None


class BuilderTrade(NamedTuple):
    """An order of a builder in a trade; `part` is the index of its fill, or `TAKER_PART`."""

    row: TradeRow
    part: int
    order: OrderRow


async def load_builder_trades(
    tx: Transaction, code: Bytes32, wanted: BuilderTradeFilter, offset: int, limit: int
) -> Sequence[BuilderTrade]:
    """Return a page of the trades of a builder's orders, the newest first."""
    taken = sa.select(
        trades.c.trade_id,
        sa.literal(TAKER_PART).label("part"),
        trades.c.taker_order_id.label("order_id"),
        trades.c.token_id,
        trades.c.taker.label("wallet"),
    ).join(orders, orders.c.order_id == trades.c.taker_order_id)
    made = sa.select(
        fills.c.trade_id,
        fills.c.fill_index.label("part"),
        fills.c.maker_order_id.label("order_id"),
        fills.c.token_id,
        fills.c.maker.label("wallet"),
    ).join(orders, orders.c.order_id == fills.c.maker_order_id)
    is_brought = orders.c.attributed_code == code
    parts = sa.union_all(taken.where(is_brought), made.where(is_brought)).subquery()
    query = sa.select(parts).join(trades, trades.c.trade_id == parts.c.trade_id)
    for condition in _conditions(parts, wanted):
        query = query.where(condition)
    newest = query.order_by(
        trades.c.matched_at_ms.desc(),
        trades.c.sequence.desc(),
        trades.c.trade_id,
        parts.c.part,
        parts.c.order_id,
    )
    rows = await tx.all(newest.offset(offset).limit(limit))
    found = await load_trades_by_id(tx, list({row.trade_id for row in rows}))
    trade_by_id = {row.trade.trade_id: row for row in found}
    order_by_id = await load_orders(tx, list({row.order_id for row in rows}))
    return [_builder_trade(row, trade_by_id, order_by_id) for row in rows]


async def record_builder_rates(tx: Transaction, code: Bytes32, rates: BuilderRates) -> None:
    """Store rates that are in force from their time on."""
    await tx.execute(builder_rates.insert().values(builder_code=code, **rates._asdict()))


async def load_builder_rates(tx: Transaction, code: Bytes32) -> Sequence[BuilderRates]:
    """Return all rates of a builder, in order of their times."""
    rows = await tx.all(
        sa.select(builder_rates)
        .where(builder_rates.c.builder_code == code)
        .order_by(builder_rates.c.from_ms)
    )
    return [BuilderRates(row.from_ms, row.taker_share_bps, row.maker_flat_bps) for row in rows]


def _conditions(parts: sa.Subquery, wanted: BuilderTradeFilter) -> list[Any]:
    conditions: list[Any] = []
    for column, value in (
        (trades.c.trade_id, wanted.trade_id),
        (trades.c.condition_id, wanted.condition_id),
        (parts.c.token_id, wanted.token_id),
        (parts.c.wallet, wanted.wallet),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.before_s is not None:
        conditions.append(trades.c.matched_at_ms < wanted.before_s * 1000)
    if wanted.after_s is not None:
        conditions.append(trades.c.matched_at_ms >= wanted.after_s * 1000)
    return conditions


def _builder_trade(
    row: sa.Row[Any],
    trade_by_id: Mapping[str, TradeRow],
    order_by_id: Mapping[str, OrderRow],
) -> BuilderTrade:
    """Return a part of a trade; the index of a fill in the table may have gaps, so it is found by its order."""
    trade = trade_by_id[row.trade_id]
    part = TAKER_PART
    if row.part != TAKER_PART:
        makers = [fill.maker_order_id for fill in trade.trade.fills]
        part = makers.index(row.order_id)
    return BuilderTrade(trade, part, order_by_id[row.order_id])

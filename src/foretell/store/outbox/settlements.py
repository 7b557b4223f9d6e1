"""Settlements: the transaction that carries a trade, and its outcome on the chain.

Written by settlement.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import PENDING
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import (
    exchange_fills,
    fills,
    markets,
    refused_orders,
    settled_trades,
    settlement_tx_attempts,
    settlement_txs,
    trades,
)
from foretell.store.trading.trades import OLDEST_FIRST, TradeRow

TOPIC: Final = "settlements"
UNSETTLED: Final = tuple(status.value for status in PENDING)


class SettlementOutcome(NamedTuple):
    """The outcome of a trade's settlement: the block it is in, or why it is in none."""

    trade_id: str
    tx_hash: str | None
    block_number: int | None
    failure: str | None
    is_given_up: bool


async def record_settlement(tx: Transaction, settlement: Settlement) -> None:
    """Store the progress of a trade's settlement."""
    values = settlement._asdict()
    known = settled_trades.update().where(settled_trades.c.trade_id == settlement.trade_id)
    if not await tx.execute(known.values(values)):
        await tx.execute(settled_trades.insert().values(values))
    await tx.announce(TOPIC)


async def load_due_settlements(
    tx: Transaction, now_ms: int, limit: int, closed: Collection[Address] = ()
) -> Sequence[Settlement]:
    """Return the oldest unsettled trades that no transaction carries and that may be tried.

    A trade that is to be split waits for the split, and one of a closed exchange until it opens.
    """
    is_closed = trades.c.condition_id.in_(
        sa.select(markets.c.condition_id).where(markets.c.exchange.in_(closed))
    )
    is_known = settled_trades.c.trade_id.is_not(None)
    may_be_tried = sa.and_(
        settled_trades.c.tx_id.is_(None),
        settled_trades.c.is_given_up.is_(False),
        settled_trades.c.retry_at_ms <= now_ms,
    )
    rows = await tx.all(
        sa.select(trades.c.trade_id.label("trade"), settled_trades)
        .outerjoin(settled_trades, settled_trades.c.trade_id == trades.c.trade_id)
        .where(
            trades.c.status.in_(UNSETTLED),
            sa.or_(sa.not_(is_known), may_be_tried),
            sa.not_(_needs_split()),
            *([sa.not_(is_closed)] if closed else []),
        )
        .order_by(*OLDEST_FIRST)
        .limit(limit)
    )
    return [_settlement(row) for row in rows]


def _needs_split() -> sa.Exists:
    """Return whether a fill that is to leave a trade is still in it."""
    leaves = sa.and_(
        fills.c.trade_id == refused_orders.c.trade_id,
        fills.c.maker_order_id == refused_orders.c.order_id,
    )
    return (
        sa.select(refused_orders.c.order_id)
        .join(fills, leaves)
        .where(refused_orders.c.trade_id == trades.c.trade_id, refused_orders.c.part > 0)
        .exists()
    )


async def load_open_settlements(tx: Transaction) -> Sequence[Settlement]:
    """Return the settlements whose transaction may be on its way, or has failed."""
    is_on_its_way = sa.or_(
        settlement_txs.c.status.is_(None), settlement_txs.c.status != TxStatus.CONFIRMED.value
    )
    rows = await tx.all(
        sa.select(trades.c.trade_id.label("trade"), settled_trades)
        .join(settled_trades, settled_trades.c.trade_id == trades.c.trade_id)
        .outerjoin(settlement_txs, settlement_txs.c.tx_id == settled_trades.c.tx_id)
        .where(settled_trades.c.tx_id.is_not(None), trades.c.status.in_(UNSETTLED), is_on_its_way)
        .order_by(*OLDEST_FIRST)
    )
    return [_settlement(row) for row in rows]


async def has_unsettled(tx: Transaction) -> bool:
    """Return whether any trade is in no block yet and not given up."""
    return await tx.first(_unsettled().limit(1)) is not None


async def has_unsettled_before(tx: Transaction, trade: TradeRow) -> bool:
    """Return whether an earlier trade that is in no block yet moves assets of the same wallets.

    A later trade may give what such a trade has yet to bring.
    """
    wallets = {trade.trade.taker, *(fill.maker for fill in trade.trade.fills)}
    is_maker = (
        sa.select(fills.c.trade_id)
        .where(fills.c.trade_id == trades.c.trade_id, fills.c.maker.in_(wallets))
        .exists()
    )
    is_earlier = sa.tuple_(trades.c.matched_at_ms, trades.c.sequence) < sa.tuple_(
        trade.trade.matched_at_ms, trade.sequence
    )
    before = _unsettled().where(is_earlier, sa.or_(trades.c.taker.in_(wallets), is_maker))
    return await tx.first(before.limit(1)) is not None


def _unsettled() -> sa.Select[tuple[str]]:
    return (
        sa.select(trades.c.trade_id)
        .outerjoin(settled_trades, settled_trades.c.trade_id == trades.c.trade_id)
        .where(
            trades.c.status.in_(UNSETTLED),
            sa.func.coalesce(settled_trades.c.is_given_up, sa.false()).is_(sa.false()),
        )
    )


async def load_settlement_outcomes(
    tx: Transaction, trade_ids: Sequence[str]
) -> Sequence[SettlementOutcome]:
    """Return the outcome of these trades as of the last indexed block.

    Any attempt of a transaction may be the one that was mined; the exchange's own log shows which.
    """
    rows = await tx.all(
        sa.select(
            settled_trades.c.trade_id,
            settled_trades.c.failure,
            settled_trades.c.is_given_up,
            sa.func.max(exchange_fills.c.tx_hash).label("tx_hash"),
            sa.func.max(exchange_fills.c.block_number).label("block_number"),
        )
        .outerjoin(settlement_tx_attempts, settlement_tx_attempts.c.tx_id == settled_trades.c.tx_id)
        .outerjoin(exchange_fills, exchange_fills.c.tx_hash == settlement_tx_attempts.c.tx_hash)
        .where(settled_trades.c.trade_id.in_(trade_ids))
        .group_by(settled_trades.c.trade_id, settled_trades.c.failure, settled_trades.c.is_given_up)
    )
    return [
        SettlementOutcome(row.trade_id, row.tx_hash, row.block_number, row.failure, row.is_given_up)
        for row in rows
    ]


def _settlement(row: sa.Row[Any]) -> Settlement:
    if row.trade_id is None:
        return Settlement(row.trade)
    return Settlement(
        trade_id=row.trade_id,
        tx_id=row.tx_id,
        attempts=row.attempts,
        retry_at_ms=row.retry_at_ms,
        failure=row.failure,
        is_given_up=row.is_given_up,
        refusals=row.refusals,
    )

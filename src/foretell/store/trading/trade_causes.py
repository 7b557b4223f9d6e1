"""The causes of trades that failed: what settlement stored of their last try."""

from collections.abc import Sequence

import sqlalchemy as sa

from foretell.domain.exchange.trade import TradeStatus
from foretell.store.database import Transaction
from foretell.store.tables import settled_trades
from foretell.store.trading.trades import TradeRow


async def with_causes(tx: Transaction, rows: Sequence[TradeRow]) -> Sequence[TradeRow]:
    """Return trades, those that failed with why; where none did, nothing is read."""
    failed = [row.trade.trade_id for row in rows if row.status is TradeStatus.FAILED]
    if not failed:
        return rows
    found = await tx.all(
        sa.select(settled_trades.c.trade_id, settled_trades.c.failure).where(
            settled_trades.c.trade_id.in_(failed)
        )
    )
    cause_by_trade = {row.trade_id: row.failure or "" for row in found}
    return [row._replace(cause=cause_by_trade.get(row.trade.trade_id, "")) for row in rows]

"""Volumes of markets, in base units of collateral."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from foretell.domain.exchange.trade import TradeStatus
from foretell.store.database import Transaction
from foretell.store.tables import quotes, trades


async def load_volumes(tx: Transaction, condition_ids: Sequence[str]) -> Mapping[str, int]:
    """Return the volumes of markets since they opened; those without a quote are left out."""
    rows = await tx.all(
        sa.select(quotes.c.condition_id, quotes.c.volume_units).where(
            quotes.c.condition_id.in_(condition_ids)
        )
    )
    return {row.condition_id: row.volume_units for row in rows}


async def load_volumes_since(
    tx: Transaction, condition_ids: Sequence[str], since_ms: int
) -> Mapping[str, int]:
    """Return the volumes of markets since a time, without failed trades."""
    rows = await tx.all(
        sa.select(trades.c.condition_id, sa.func.sum(trades.c.cost_units).label("units"))
        .where(
            trades.c.condition_id.in_(condition_ids),
            trades.c.matched_at_ms >= since_ms,
            trades.c.status != TradeStatus.FAILED.value,
        )
        .group_by(trades.c.condition_id)
    )
    return {row.condition_id: int(row.units) for row in rows}

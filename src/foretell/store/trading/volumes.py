"""Volumes of markets, in base units of collateral: of trades that have not failed to settle (`store/valuation.py`)."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from foretell.domain.portfolio.failed_volumes import periods_since
from foretell.store.database import Transaction
from foretell.store.tables import markets, quotes
from foretell.store.valuation import MINUTE_MS, VOLUME, volume_since


async def load_volumes(tx: Transaction, condition_ids: Sequence[str]) -> Mapping[str, int]:
    """Return the volumes of markets since they opened; those without a quote are left out."""
    rows = await tx.all(
        sa.select(quotes.c.condition_id, VOLUME.label("units")).where(
            quotes.c.condition_id.in_(condition_ids)
        )
    )
    return {row.condition_id: row.units for row in rows}


async def load_volumes_since(
    tx: Transaction, condition_ids: Sequence[str], since_ms: int
) -> Mapping[str, int]:
    """Return the volumes of markets since the beginning of a minute."""
    since = periods_since(since_ms // MINUTE_MS)
    rows = await tx.all(
        sa.select(markets.c.condition_id, volume_since(*since).label("units")).where(
            markets.c.condition_id.in_(condition_ids)
        )
    )
    return {row.condition_id: max(row.units, 0) for row in rows}

"""Trades of the wallets that an address referred, summed when they are asked for.

They are read from the activities of the chain, so a reorganization takes back what it takes back of those.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.tables import activities, markets, referred_wallets


class ReferralFilter(NamedTuple):
    """A referrer, and what to sum of its wallets' trades; None matches every value."""

    referrer: Address
    exchange: Address | None = None
    token_id: str | None = None


class ReferredVolume(NamedTuple):
    """The collateral of referred trades on an exchange, and the time of the last one."""

    exchange: Address
    volume_units: int
    updated_at_s: int


async def load_referred_volumes(
    tx: Transaction, wanted: ReferralFilter, limit: int, offset: int
) -> Sequence[ReferredVolume]:
    """Return the sums of each exchange, the latest first."""
    volume, latest = sa.func.sum(activities.c.cost_units), sa.func.max(activities.c.timestamp_s)
    query = (
        sa.select(markets.c.exchange, volume.label("volume"), latest.label("latest"))
        .select_from(referred_wallets)
        .join(activities, activities.c.wallet == referred_wallets.c.wallet)
        .join(markets, markets.c.condition_id == activities.c.condition_id)
        .where(
            referred_wallets.c.referrer == wanted.referrer,
            activities.c.kind == ActivityKind.TRADE.value,
            activities.c.timestamp_s >= referred_wallets.c.from_s,
        )
        .group_by(markets.c.exchange)
        .order_by(latest.desc(), markets.c.exchange)
    )
    if wanted.exchange is not None:
        query = query.where(markets.c.exchange == wanted.exchange)
    if wanted.token_id is not None:
        query = query.where(activities.c.token_id == wanted.token_id)
    rows = await tx.all(query.limit(limit).offset(offset))
    return [ReferredVolume(Address(row.exchange), int(row.volume), row.latest) for row in rows]

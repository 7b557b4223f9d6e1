"""Failed requests: they keep no payload and no image, and are deleted after a time. Written by creation."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from foretell.domain.creation.request import RequestStatus
from foretell.store.database import Transaction
from foretell.store.tables import claims, request_images, request_txs, requests

_IS_FAILED: Final = requests.c.status == RequestStatus.FAILED
_HAS_NO_PLAN: Final = requests.c.plan.is_(sa.null())


async def load_failed_with_payloads(tx: Transaction, most: int) -> list[str]:
    """Return the ids of failed requests that still have payloads, as an earlier version left them."""
    rows = await tx.all(
        sa.select(requests.c.request_id)
        .where(_IS_FAILED, requests.c.payload.is_not(None))
        .limit(most)
    )
    return [row.request_id for row in rows]


async def drop_payloads(tx: Transaction, request_ids: Sequence[str]) -> None:
    """Delete the payloads and the images of failed requests."""
    are_they = requests.c.request_id.in_(request_ids)
    await tx.execute(requests.update().where(_IS_FAILED, are_they).values(payload=None))
    await tx.execute(request_images.delete().where(request_images.c.request_id.in_(request_ids)))


async def load_failed_before(
    tx: Transaction, before_ms: int, planned_before_ms: int, most: int
) -> list[str]:
    """Return the ids of requests that failed before a time; of those with a plan, before an earlier time.

    The challenge of each ended before that time, too, so an index finds them.
    """
    rows = await tx.all(
        sa.select(requests.c.request_id)
        .where(
            _IS_FAILED,
            requests.c.expires_at_ms < before_ms,
            requests.c.updated_at_ms < before_ms,
            sa.or_(_HAS_NO_PLAN, requests.c.updated_at_ms < planned_before_ms),
        )
        .order_by(requests.c.expires_at_ms)
        .limit(most)
    )
    return [row.request_id for row in rows]


async def load_failed_surplus(tx: Transaction, kept: int, most: int) -> list[str]:
    """Return the ids of the oldest failed requests without a plan, beyond so many that are kept."""
    rows = await tx.all(
        sa.select(requests.c.request_id)
        .where(_IS_FAILED, _HAS_NO_PLAN)
        .order_by(requests.c.expires_at_ms.desc(), requests.c.request_id.desc())
        .offset(kept)
        .limit(most)
    )
    return [row.request_id for row in rows]


async def forget_failed(tx: Transaction, request_ids: Sequence[str]) -> None:
    """Delete failed requests, with the names that they held."""
    for table in (claims, request_txs, request_images):
        await tx.execute(table.delete().where(table.c.request_id.in_(request_ids)))
    are_they = requests.c.request_id.in_(request_ids)
    await tx.execute(requests.delete().where(_IS_FAILED, are_they))

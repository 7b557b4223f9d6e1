"""Claims: the request that holds a slug, or the right to open a condition's market.

A name has one holder. The database decides between two requests that claim it at once. Written by
creation.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from foretell.domain.creation.request import Claim, RequestStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import claims, requests
from foretell.store.text_order import by_code_points


async def load_claims(tx: Transaction, names: Sequence[str]) -> list[Claim]:
    """Return the claims on these names; a free name has none."""
    rows = await tx.all(
        sa.select(claims, requests.c.creator, requests.c.status, requests.c.created_at_ms)
        .join(requests, requests.c.request_id == claims.c.request_id)
        .where(claims.c.name.in_(names))
        .order_by(by_code_points(claims.c.name))
    )
    return [
        Claim(
            name=row.name,
            request_id=row.request_id,
            creator=Address(row.creator),
            status=RequestStatus(row.status),
            claimed_at_ms=row.claimed_at_ms,
            begun_at_ms=row.created_at_ms,
        )
        for row in rows
    ]


async def record_claims(
    tx: Transaction,
    request_id: str,
    names: Sequence[str],
    taken: Sequence[Claim],
    claimed_at_ms: int,
) -> bool:
    """Claim names for a request, replacing the `taken` claims; return whether it holds all of them."""
    for held in taken:
        await tx.execute(
            claims.delete().where(
                claims.c.name == held.name, claims.c.request_id == held.request_id
            )
        )
    claimed = [
        await tx.insert_new(claims, name=name, request_id=request_id, claimed_at_ms=claimed_at_ms)
        for name in names
    ]
    return all(claimed)

"""Signed requests that were carried out, with their answers, while their signatures are valid.

Written by trading.
"""

from typing import NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import signed_requests


class StoredAnswer(NamedTuple):
    """The status and the JSON body of an answer."""

    status: int
    body: str


class TakenRequest(NamedTuple):
    """A request that was taken; its answer is None until it is known."""

    answer: StoredAnswer | None


async def take_request(tx: Transaction, signature: str, expires_at_ms: int) -> TakenRequest | None:
    """Store a request and return None, or return the one that was stored before with this signature."""
    if await tx.insert_new(signed_requests, signature=signature, expires_at_ms=expires_at_ms):
        return None
    return await load_taken(tx, signature)


async def load_taken(tx: Transaction, signature: str) -> TakenRequest | None:
    """Return the request of a signature, or None if there is none."""
    row = await tx.first(sa.select(signed_requests).where(signed_requests.c.signature == signature))
    if row is None:
        return None
    return TakenRequest(None if row.status is None else StoredAnswer(row.status, row.answer))


async def record_answer(tx: Transaction, signature: str, answer: StoredAnswer) -> None:
    """Store the answer to a request."""
    await tx.execute(
        signed_requests.update()
        .where(signed_requests.c.signature == signature)
        .values(status=answer.status, answer=answer.body)
    )


async def release_request(tx: Transaction, signature: str) -> None:
    """Forget a request that was refused without any effect."""
    await tx.execute(signed_requests.delete().where(signed_requests.c.signature == signature))


async def drop_expired_requests(tx: Transaction, now_ms: int) -> int:
    """Forget requests whose signatures are no longer accepted; return how many are left."""
    await tx.execute(signed_requests.delete().where(signed_requests.c.expires_at_ms < now_ms))
    left = await tx.scalar(sa.select(sa.func.count()).select_from(signed_requests))
    return int(left)

"""Signed requests that were carried out, with their answers, while their signatures are valid.

Written by trading.
"""

from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import signed_requests

_FORGOTTEN: Final = "forgotten"
"""The signature of the row that has the latest end of a forgotten request."""


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
    """Forget requests whose signatures are no longer accepted; return how many are left.

    The latest end of a forgotten one is kept: a clock that is set back must not make its signature new.
    """
    is_over = sa.and_(
        signed_requests.c.expires_at_ms < now_ms, signed_requests.c.signature != _FORGOTTEN
    )
    until_ms = await tx.scalar(
        sa.select(sa.func.max(signed_requests.c.expires_at_ms)).where(is_over)
    )
    if until_ms is not None:
        until_ms = max(until_ms, await load_forgotten_until(tx))
        await tx.execute(signed_requests.delete().where(is_over))
        await release_request(tx, _FORGOTTEN)
        await take_request(tx, _FORGOTTEN, until_ms)
    is_kept = signed_requests.c.signature != _FORGOTTEN
    left = await tx.scalar(sa.select(sa.func.count()).select_from(signed_requests).where(is_kept))
    return int(left)


async def load_forgotten_until(tx: Transaction) -> int:
    """Return the latest end of a request that was forgotten, in milliseconds; 0 if there is none."""
    own = signed_requests.c.signature == _FORGOTTEN
    return int(await tx.scalar(sa.select(signed_requests.c.expires_at_ms).where(own)) or 0)

"""Requests that were carried out, with their answers.

They are kept while their signatures are valid, or for a day if their client named them with a key. Written
by the edge of the APIs that change something.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import signed_requests

DROPPED_AT_ONCE: Final = 100
_FORGOTTEN: Final = "forgotten"
"""The signature of the row that has the latest end of a forgotten request."""


class StoredAnswer(NamedTuple):
    """The status and the JSON body of an answer."""

    status: int
    body: str


class RequestIdentity(NamedTuple):
    """What is the same in a request that is sent again: its signature, or its client's key for it.

    Of the two only a request with a key has a client and a hash of its content. A client is named by its API and
    by its address there.
    """

    signature: str
    expires_at_ms: int
    client: str | None = None
    content_hash: str | None = None


class TakenRequest(NamedTuple):
    """A request that was taken; its answer is None until it is known."""

    answer: StoredAnswer | None
    content_hash: str | None = None


async def take_request(tx: Transaction, identity: RequestIdentity) -> TakenRequest | None:
    """Store a request and return None, or return the one that was stored before with this identity."""
    if await tx.insert_new(signed_requests, **identity._asdict()):
        return None
    return await load_taken(tx, identity.signature)


async def load_taken(tx: Transaction, signature: str) -> TakenRequest | None:
    """Return the request of a signature, or None if there is none."""
    row = await tx.first(sa.select(signed_requests).where(signed_requests.c.signature == signature))
    if row is None:
        return None
    answer = None if row.status is None else StoredAnswer(row.status, row.answer)
    return TakenRequest(answer, row.content_hash)


async def record_answer(tx: Transaction, signature: str, answer: StoredAnswer) -> None:
    """Store the answer to a request."""
    await tx.execute(
        signed_requests.update()
        .where(signed_requests.c.signature == signature)
        .values(status=answer.status, answer=answer.body)
    )


async def release_request(tx: Transaction, signature: str) -> None:
    """Forget a request that was refused without any effect."""
    await release_requests(tx, [signature])


async def release_requests(tx: Transaction, signatures: Sequence[str]) -> None:
    """Forget requests that were refused without any effect."""
    await tx.execute(signed_requests.delete().where(signed_requests.c.signature.in_(signatures)))


async def drop_oldest_of(tx: Transaction, client: str, kept_max: int) -> None:
    """Forget the oldest requests with a key of a client beyond a number."""
    newest_first = (
        sa.select(signed_requests.c.signature)
        .where(signed_requests.c.client == client)
        .order_by(signed_requests.c.expires_at_ms.desc(), signed_requests.c.signature)
    )
    for row in await tx.all(newest_first.offset(kept_max).limit(DROPPED_AT_ONCE)):
        await release_request(tx, row.signature)


def api_of(client: str) -> str:
    """Return the API of a client, which its name begins with."""
    return client.partition(" ")[0]


async def count_keyed_requests(tx: Transaction, api: str) -> int:
    """Return the number of an API's requests with a key."""
    return int(await tx.scalar(sa.select(sa.func.count()).where(_is_keyed(api))) or 0)


async def drop_oldest_of_greediest(tx: Transaction, api: str, count: int) -> None:
    """Forget requests with a key of an API, each time the oldest of the client that has most of them."""
    number = sa.func.count()
    greediest = (
        sa.select(signed_requests.c.client, number.label("held"))
        .where(_is_keyed(api))
        .group_by(signed_requests.c.client)
        .order_by(number.desc(), sa.func.min(signed_requests.c.expires_at_ms))
        .limit(count)
    )
    held = [(str(row.client), int(row.held)) for row in await tx.all(greediest)]
    for client, dropped in _given_up(held, count).items():
        oldest = (
            sa.select(signed_requests.c.signature)
            .where(signed_requests.c.client == client)
            .order_by(signed_requests.c.expires_at_ms, signed_requests.c.signature)
            .limit(dropped)
        )
        await tx.execute(signed_requests.delete().where(signed_requests.c.signature.in_(oldest)))


def _given_up(held: Sequence[tuple[str, int]], count: int) -> Mapping[str, int]:
    """Return how many keys each client gives up, of clients with their numbers of keys, the greatest first."""
    given_up: dict[str, int] = {}
    greediest = [(-keys, place) for place, (_, keys) in enumerate(held)]
    for _ in range(min(count, sum(keys for _, keys in held))):
        keys, place = greediest[0]
        heapq.heapreplace(greediest, (keys + 1, place))
        client = held[place][0]
        given_up[client] = given_up.get(client, 0) + 1
    return given_up


def _is_keyed(api: str) -> sa.ColumnElement[bool]:
    client = signed_requests.c.client
    return sa.and_(client.is_not(None), client.startswith(f"{api} ", autoescape=True))


async def drop_expired_requests(tx: Transaction, now_ms: int) -> int:
    """Forget requests whose time is over; return how many without a key are left.

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
        await take_request(tx, RequestIdentity(_FORGOTTEN, until_ms))
    is_kept = sa.and_(signed_requests.c.signature != _FORGOTTEN, signed_requests.c.client.is_(None))
    left = await tx.scalar(sa.select(sa.func.count()).select_from(signed_requests).where(is_kept))
    return int(left)


async def load_forgotten_until(tx: Transaction) -> int:
    """Return the latest end of a request that was forgotten, in milliseconds; 0 if there is none."""
    own = signed_requests.c.signature == _FORGOTTEN
    return int(await tx.scalar(sa.select(signed_requests.c.expires_at_ms).where(own)) or 0)

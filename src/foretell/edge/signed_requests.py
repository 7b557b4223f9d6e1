"""Requests that are carried out once, however often they are sent.

One who sees a signed request could send it again while its time of signing is accepted: a cancel of all orders
would then cancel later ones too. The signature is the identity of a request. The database keeps it with the
answer, for all processes. Without the database, or beyond `STORED_MAX`, each process remembers its own newest
requests only, because a cancel is never refused for want of room. Beyond the keys that an API keeps, the client with
most of them gives up its oldest, so that nobody pays for the keys of others.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog

from foretell.domain.errors.families import ForetellError, Unavailable, Upstream
from foretell.domain.errors.http import IdempotencyKeyReused
from foretell.domain.errors.order import RequestTaken
from foretell.domain.errors.storage import StoreUnavailable, WritesBusy
from foretell.domain.values.credentials import SKEW_PAST_S
from foretell.domain.values.hexadecimal import keccak256
from foretell.edge.codec import encode_json
from foretell.edge.refusals import BodyOf
from foretell.runtime.lru import LruCache
from foretell.store.database import Database, Transaction
from foretell.store.failures import begun_in_part
from foretell.store.public_reads.places import ReadKind
from foretell.store.signed_requests import (
    RequestIdentity,
    StoredAnswer,
    TakenRequest,
    api_of,
    count_keyed_requests,
    drop_expired_requests,
    drop_oldest_of,
    drop_oldest_of_greediest,
    load_forgotten_until,
    load_taken,
    record_answer,
    release_requests,
    take_request,
)
from foretell.store.write_places import (
    WatchedWrites,
    watching_writes,
    writing_apart,
    writing_without_place,
)

STORED_MAX: Final = 200_000
KEYS_MAX: Final = 50_000
"""Keys of an API whose clients are authenticated."""
KEYS_OF_ANYONE_MAX: Final = 5_000
"""Keys of an API whose clients are addresses."""
KEYS_PER_DROP: Final = 500
"""At the bound one key more for each so many of it makes way, so that not every request counts them all."""
KEYS_DROPPED_MAX: Final = 1_000
"""Keys that make way for one request at most, as after an upgrade to a smaller bound."""
KEYS_OF_CLIENT_MAX: Final = 1_000
"""Of more keys the oldest are forgotten."""
KEY_KEPT_MS: Final = 24 * 60 * 60 * 1000
KEYED_ANSWER_BYTES_MAX: Final = 16 * 1024
REMEMBERED_MAX: Final = 256
ANSWER_BYTES_MAX: Final = 64 * 1024
"""A larger answer is not kept; the request sent again is refused."""
DROP_INTERVAL_MS: Final = 30_000
RELEASED_AT_ONCE: Final = 500
ANSWER_WAIT_S: Final = 5.0
ANSWER_LOOK_S: Final = 0.05

log = structlog.get_logger(__name__)

Act = Callable[[], Awaitable[object]]
"""Carries out a request, and returns what it is answered with."""


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """How many requests are kept, and how long an answer of another process is waited for."""

    stored_max: int = STORED_MAX
    keys_max: int = KEYS_MAX
    keys_of_client_max: int = KEYS_OF_CLIENT_MAX
    answer_wait_s: float = ANSWER_WAIT_S


def signed_identity(signature: str, signed_at_s: int) -> RequestIdentity:
    """Return the identity of a request until its signature is not accepted any more."""
    return RequestIdentity(signature, (signed_at_s + SKEW_PAST_S + 1) * 1000)


def keyed_identity(client: str, key: str, content: bytes, now_ms: int) -> RequestIdentity:
    """Return the identity of a request that its client named with a key, for a day."""
    content_hash = keccak256(content).hex()
    return RequestIdentity(f"key {client} {key}", now_ms + KEY_KEPT_MS, client, content_hash)


BOUNDS: Final = RequestBounds()


class _Running(NamedTuple):
    identity: RequestIdentity
    task: asyncio.Task[StoredAnswer]


class SignedRequests:
    """Answers requests; the first with an identity is carried out, others get its answer."""

    def __init__(
        self,
        database: Database,
        now_ms: Callable[[], int],
        body_of: BodyOf,
        bounds: RequestBounds = BOUNDS,
    ) -> None:
        self._database = database
        self.now_ms = now_ms
        self._body_of = body_of
        self._bounds = bounds
        self._running: dict[str, _Running] = {}
        self._remembered: LruCache[str, TakenRequest] = LruCache(REMEMBERED_MAX)
        self._refused: deque[str] = deque()
        """Requests that had no effect, whose rows are not deleted yet."""
        self._releasing = asyncio.Lock()
        self._is_full = False
        self._keys_by_api: dict[str, int] = {}
        """Keys that were counted since the last drop of expired ones, and those taken here since then."""
        self._dropped_at_ms = 0

    async def answer(self, identity: RequestIdentity, act: Act) -> StoredAnswer:
        """Return the answer to a request, which is carried out unless it was before.

        A client that goes away does not end the work: its answer must become known.
        """
        signature = identity.signature
        running = self._running.get(signature)
        if running is None:
            task = asyncio.create_task(self._carry_out(identity, act))
            running = self._running[signature] = _Running(identity, task)
            task.add_done_callback(lambda ended: self._end(signature, ended))
        check_same(running.identity.content_hash, identity)
        return await asyncio.shield(running.task)

    async def find(self, signature: str, kind: ReadKind = ReadKind.OWN) -> StoredAnswer | None:
        """Return the answer to a request that was carried out, or None."""
        async with self._database.public_reading(kind) as tx:
            taken = await load_taken(tx, signature)
        return None if taken is None else taken.answer

    def _end(self, signature: str, task: asyncio.Task[StoredAnswer]) -> None:
        del self._running[signature]
        if not task.cancelled():
            task.exception()  # its caller may be gone

    async def _carry_out(self, identity: RequestIdentity, act: Act) -> StoredAnswer:
        """Return the answer to a request that is not running here.

        One that is not named with a key is a cancel, a heartbeat or a revocation. It does not wait for others of its
        account. The writes that keep answers are no effects of the request that this one is a part of.
        """
        turn = writing_apart() if identity.client is None else contextlib.nullcontext()
        with turn, watching_writes():
            return await self._take_and_act(identity, act)

    async def _take_and_act(self, identity: RequestIdentity, act: Act) -> StoredAnswer:
        taken = self._remembered.get(identity.signature)
        if taken is None:
            try:
                taken = await self._take(identity)
            except StoreUnavailable as cause:
                if identity.client is not None:
                    raise
                log.warning("signed request not stored", cause=cause.message)
        if taken is not None:
            check_same(taken.content_hash, identity)
            return await self._first_answer(identity.signature, taken)
        return await self._act(identity, act)

    async def _take(self, identity: RequestIdentity) -> TakenRequest | None:
        now_ms, signature = self.now_ms(), identity.signature
        async with self._database.writing() as tx:
            if now_ms - self._dropped_at_ms >= DROP_INTERVAL_MS:
                self._is_full = await drop_expired_requests(tx, now_ms) >= self._bounds.stored_max
                self._dropped_at_ms = now_ms
                self._keys_by_api.clear()
            if identity.client is not None:
                return await self._take_keyed(tx, identity, identity.client)
            if self._is_full:
                log.warning("signed requests not stored", stored_max=self._bounds.stored_max)
                return await load_taken(tx, signature)
            if identity.expires_at_ms <= await load_forgotten_until(tx):
                return await self._known(tx, signature)
            return await take_request(tx, identity)

    async def _take_keyed(
        self, tx: Transaction, identity: RequestIdentity, client: str
    ) -> TakenRequest | None:
        """Take a request with a key; the client's oldest keys make way for it, or those of the one with most."""
        taken = await load_taken(tx, identity.signature)
        if taken is not None:
            return taken
        await drop_oldest_of(tx, client, self._bounds.keys_of_client_max - 1)
        await self._make_room(tx, api_of(client))
        return await take_request(tx, identity)

    async def _make_room(self, tx: Transaction, api: str) -> None:
        """Forget keys of an API until there is room for one more.

        Keys that other processes take count once this one counts again.
        """
        keys = self._keys_by_api.get(api)
        if keys is None or keys >= self._bounds.keys_max:
            keys = await count_keyed_requests(tx, api)
        surplus = keys - self._bounds.keys_max + 1
        if surplus > 0:
            dropped = min(surplus + self._bounds.keys_max // KEYS_PER_DROP, KEYS_DROPPED_MAX)
            await drop_oldest_of_greediest(tx, api, dropped)
            keys -= dropped
        self._keys_by_api[api] = keys + 1

    async def _known(self, tx: Transaction, signature: str) -> TakenRequest:
        """Return a request that is stored, or refuse one that may have been forgotten."""
        taken = await load_taken(tx, signature)
        if taken is None:
            raise RequestTaken
        return taken

    async def _first_answer(self, signature: str, taken: TakenRequest) -> StoredAnswer:
        """Return the first answer, once the process that carries the request out has stored it."""
        is_here = self._remembered.get(signature) is not None
        looks = 0 if is_here else int(self._bounds.answer_wait_s / ANSWER_LOOK_S)
        answer = taken.answer
        while answer is None and looks > 0:
            looks -= 1
            await asyncio.sleep(ANSWER_LOOK_S)
            answer = await self.find(signature)
        if answer is None:
            raise RequestTaken
        return answer

    async def _act(self, identity: RequestIdentity, act: Act) -> StoredAnswer:
        """Carry out a request and store its answer; one that had no effect, or goes on, may be sent again.

        Where a client named a request, nothing is asked of the chain before it is written down.
        """
        signature, content_hash = identity.signature, identity.content_hash
        with watching_writes() as writes:
            try:
                answer = _answer_of(200, await _watched(act, writes))
            except (Unavailable, Upstream) as refusal:
                is_named = identity.client is not None
                had_none = is_named and isinstance(refusal, Upstream) and not writes.has_begun
                if refusal.definite or refusal.resumed or had_none:
                    await self._release(signature)
                else:
                    self._remembered.put(signature, TakenRequest(None, content_hash))
                raise
            except ForetellError as refusal:
                answer = _answer_of(*self._body_of(refusal))
        bytes_max = ANSWER_BYTES_MAX if identity.client is None else KEYED_ANSWER_BYTES_MAX
        is_kept = len(answer.body) <= bytes_max
        self._remembered.put(signature, TakenRequest(answer if is_kept else None, content_hash))
        if is_kept:
            await self._store(record_answer, signature, answer)
        return answer

    async def _release(self, signature: str) -> None:
        """Forget a request that had no effect.

        It may have been refused because all places are taken, so this needs none. All that wait for it are forgotten
        together, one transaction at a time.
        """
        self._refused.append(signature)
        async with self._releasing:
            while self._refused:
                count = min(len(self._refused), RELEASED_AT_ONCE)
                signatures = [self._refused.popleft() for _ in range(count)]
                with writing_without_place():
                    await self._store(release_requests, signatures)

    async def _store(self, write: Callable[..., Awaitable[None]], *values: object) -> None:
        try:
            async with self._database.writing() as tx:
                await write(tx, *values)
        except StoreUnavailable as cause:
            log.warning("answer of a signed request not stored", cause=cause.message)


async def _watched(act: Act, writes: WatchedWrites) -> object:
    """Return what a request is answered with, or refuse; `WritesBusy` means then that none of its writes began."""
    try:
        return await act()
    except WritesBusy as refusal:
        if writes.has_begun:
            raise begun_in_part() from refusal
        raise


def check_same(content_hash: str | None, identity: RequestIdentity) -> None:
    """Refuse a key that was used for another request."""
    if content_hash != identity.content_hash:
        raise IdempotencyKeyReused


def _answer_of(status: int, value: object) -> StoredAnswer:
    if isinstance(value, StoredAnswer):
        return value
    return StoredAnswer(status, encode_json(value).decode())

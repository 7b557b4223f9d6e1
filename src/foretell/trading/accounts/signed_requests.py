"""Signed requests that are carried out once, however often they are sent.

One who sees a signed request could send it again while its time of signing is accepted: a cancel of all orders
would then cancel later ones too. The signature is the identity of a request. The database keeps it with the
answer, for all processes. Without the database, or beyond `STORED_MAX`, each process remembers its own newest
requests only, because a cancel is never refused for want of room.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec
import structlog

from foretell.domain.errors.families import ForetellError, Unavailable, Upstream
from foretell.domain.errors.order import RequestTaken
from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.values.credentials import SKEW_PAST_S
from foretell.runtime.lru import LruCache
from foretell.store.database import Database, Transaction
from foretell.store.trading.signed_requests import (
    StoredAnswer,
    TakenRequest,
    drop_expired_requests,
    load_forgotten_until,
    load_taken,
    record_answer,
    release_request,
    take_request,
)
from foretell.trading.refusals import trading_body

STORED_MAX: Final = 200_000
REMEMBERED_MAX: Final = 256
ANSWER_BYTES_MAX: Final = 64 * 1024
"""A larger answer is not kept; the request sent again is refused."""
DROP_INTERVAL_MS: Final = 30_000
ANSWER_WAIT_S: Final = 5.0
ANSWER_LOOK_S: Final = 0.05

log = structlog.get_logger(__name__)

Act = Callable[[], Awaitable[object]]
"""Carries out a request, and returns what it is answered with."""


class RequestIdentity(NamedTuple):
    """What is the same in a request that is sent again: its signature, and when it was signed."""

    signature: str
    signed_at_s: int

    @property
    def expires_at_ms(self) -> int:
        """The first millisecond in which the signature is not accepted any more."""
        return (self.signed_at_s + SKEW_PAST_S + 1) * 1000


class SignedRequests:
    """Answers signed requests; the first with a signature is carried out, others get its answer."""

    def __init__(
        self,
        database: Database,
        now_ms: Callable[[], int],
        *,
        answer_wait_s: float = ANSWER_WAIT_S,
        stored_max: int = STORED_MAX,
    ) -> None:
        self._database = database
        self._now_ms = now_ms
        self._answer_wait_s = answer_wait_s
        self._stored_max = stored_max
        self._running: dict[str, asyncio.Task[StoredAnswer]] = {}
        self._remembered: LruCache[str, TakenRequest] = LruCache(REMEMBERED_MAX)
        self._is_full = False
        self._dropped_at_ms = 0

    async def answer(self, identity: RequestIdentity, act: Act) -> StoredAnswer:
        """Return the answer to a request, which is carried out unless it was before.

        A client that goes away does not end the work: its answer must become known.
        """
        signature = identity.signature
        running = self._running.get(signature)
        if running is None:
            running = asyncio.create_task(self._take_and_act(identity, act))
            self._running[signature] = running
            running.add_done_callback(lambda task: self._end(signature, task))
        return await asyncio.shield(running)

    async def find(self, signature: str) -> StoredAnswer | None:
        """Return the answer to a request that was carried out, or None."""
        async with self._database.reading() as tx:
            taken = await load_taken(tx, signature)
        return None if taken is None else taken.answer

    def _end(self, signature: str, task: asyncio.Task[StoredAnswer]) -> None:
        del self._running[signature]
        if not task.cancelled():
            task.exception()  # its caller may be gone

    async def _take_and_act(self, identity: RequestIdentity, act: Act) -> StoredAnswer:
        signature = identity.signature
        taken = self._remembered.get(signature)
        if taken is None:
            try:
                taken = await self._take(identity)
            except StoreUnavailable as cause:
                log.warning("signed request not stored", cause=cause.message)
        if taken is not None:
            return await self._first_answer(signature, taken)
        return await self._act(signature, act)

    async def _take(self, identity: RequestIdentity) -> TakenRequest | None:
        now_ms, signature = self._now_ms(), identity.signature
        async with self._database.writing() as tx:
            if now_ms - self._dropped_at_ms >= DROP_INTERVAL_MS:
                self._is_full = await drop_expired_requests(tx, now_ms) >= self._stored_max
                self._dropped_at_ms = now_ms
            if self._is_full:
                log.warning("signed requests not stored", stored_max=self._stored_max)
                return await load_taken(tx, signature)
            if identity.expires_at_ms <= await load_forgotten_until(tx):
                return await self._known(tx, signature)
            return await take_request(tx, signature, identity.expires_at_ms)

    async def _known(self, tx: Transaction, signature: str) -> TakenRequest:
        """Return a request that is stored, or refuse one that may have been forgotten."""
        taken = await load_taken(tx, signature)
        if taken is None:
            raise RequestTaken
        return taken

    async def _first_answer(self, signature: str, taken: TakenRequest) -> StoredAnswer:
        """Return the first answer, once the process that carries the request out has stored it."""
        is_here = self._remembered.get(signature) is not None
        looks = 0 if is_here else int(self._answer_wait_s / ANSWER_LOOK_S)
        answer = taken.answer
        while answer is None and looks > 0:
            looks -= 1
            await asyncio.sleep(ANSWER_LOOK_S)
            answer = await self.find(signature)
        if answer is None:
            raise RequestTaken
        return answer

    async def _act(self, signature: str, act: Act) -> StoredAnswer:
        """Carry out a request and store its answer; one that had no effect may be sent again."""
        try:
            answer = _answer_of(200, await act())
        except (Unavailable, Upstream) as refusal:
            if refusal.definite:
                await self._store(release_request, signature)
            else:
                self._remembered.put(signature, TakenRequest(None))
            raise
        except ForetellError as refusal:
            answer = _answer_of(*trading_body(refusal))
        is_kept = len(answer.body) <= ANSWER_BYTES_MAX
        self._remembered.put(signature, TakenRequest(answer if is_kept else None))
        if is_kept:
            await self._store(record_answer, signature, answer)
        return answer

    async def _store(self, write: Callable[..., Awaitable[None]], *values: object) -> None:
        try:
            async with self._database.writing() as tx:
                await write(tx, *values)
        except StoreUnavailable as cause:
            log.warning("answer of a signed request not stored", cause=cause.message)


def _answer_of(status: int, value: object) -> StoredAnswer:
    return StoredAnswer(status, msgspec.json.encode(value).decode())

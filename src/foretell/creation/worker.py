"""Background work of requests, resumed after any stop.

Start and recovery are one path: every pass begins with the running rows. A step that waits for the
chain, the storage or the creator is retried until a deadline; then the request fails with the cause of
the wait. A step that is refused fails at once.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from foretell.creation import lost_markets
from foretell.creation.challenge import sweep_challenges
from foretell.creation.context import CreationContext
from foretell.creation.finalize import run_finalization
from foretell.creation.posting import run_posting
from foretell.creation.prepare import run_preparation
from foretell.creation.refusals import worker_code
from foretell.domain.creation.request import RUNNING, RequestStatus, RequestTrigger
from foretell.domain.errors.creation import (
    CreatorNotWhitelisted,
    CreatorUnderfunded,
    RegistrationPending,
    TxPending,
)
from foretell.domain.errors.families import ForetellError, Unavailable, Upstream
from foretell.edge.refusals import InternalError
from foretell.runtime.backoff import pauses_s
from foretell.runtime.loops import Loop, run_together
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.store.creation.requests import (
    TOPIC,
    CreationRequest,
    StoredWait,
    drop_images,
    load_request,
    load_running,
    move_request,
    record_wait,
)
from foretell.store.outbox.transactions import REGISTRATION

PACE: Final = PollIntervals(busy_s=1.0, idle_s=15.0)
SWEEP_INTERVAL_S: Final = 300.0
BACKOFF_S: Final = 1.0
BACKOFF_S_MAX: Final = 30.0
CREATOR_PAUSE_S_MAX: Final = 10.0
"""While a creator has no whitelist or too little collateral, which it may change at any time."""
AT_ONCE_MAX: Final = 4

log = structlog.get_logger(__name__)


async def run(context: CreationContext) -> None:
    """Run until cancelled: the registrar's transactions, the requests, and the permanent storage."""
    loops: list[Loop] = [
        context.registrar.run,
        partial(_work, context),
        partial(lost_markets.run, context),
    ]
    if context.permanent_storage is not None:
        loops.append(partial(run_posting, context.blobs, context.permanent_storage))
    await run_together(loops)


async def _work(context: CreationContext) -> None:
    runner = RequestRunner(context)
    swept_at_s = -SWEEP_INTERVAL_S

    async def step() -> bool:
        nonlocal swept_at_s
        running = await runner.run_once()
        if time.monotonic() - swept_at_s > SWEEP_INTERVAL_S:
            await sweep_challenges(context)
            swept_at_s = time.monotonic()
        return running > 0

    watch = partial(context.database.watching, TOPIC, REGISTRATION.topic)
    await run_watching_worker("creation requests", step, PACE, watch)


@dataclass(slots=True)
class _Backoff:
    """The pauses of a request that failed, and the time of its next attempt."""

    pauses: Iterator[float]
    until_s: float = 0.0


class RequestRunner:
    """Advances the running requests, one pass after the other."""

    def __init__(
        self, context: CreationContext, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._context = context
        self._monotonic_s = monotonic_s
        self._started_at_ms = context.now_ms()
        self._backoff_by_id: dict[str, _Backoff] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE_MAX)

    async def run_once(self) -> int:
        """Advance every running request as far as possible, and return their number."""
        async with self._context.database.reading() as tx:
            request_ids = await load_running(tx)
        for request_id in self._backoff_by_id.keys() - set(request_ids):
            del self._backoff_by_id[request_id]
        due = [request_id for request_id in request_ids if self._is_due(request_id)]
        await asyncio.gather(*map(self._advance, due))
        return len(request_ids)

    def _is_due(self, request_id: str) -> bool:
        backoff = self._backoff_by_id.get(request_id)
        return backoff is None or self._monotonic_s() >= backoff.until_s

    async def _advance(self, request_id: str) -> None:
        async with self._at_once:
            async with self._context.database.reading() as tx:
                request = await load_request(tx, request_id)
            if request is not None and request.status in RUNNING:
                await self._step(request)

    async def _step(self, request: CreationRequest) -> None:
        """Take the next step of a request; wait, back off or fail if it does not succeed."""
        is_preparing = request.status is RequestStatus.PREPARE_RUNNING
        step = run_preparation if is_preparing else run_finalization
        try:
            await step(self._context, request)
        except (RegistrationPending, TxPending) as cause:
            await self._wait(request, cause)
        except (CreatorNotWhitelisted, CreatorUnderfunded) as cause:
            self._back_off(request, most_s=CREATOR_PAUSE_S_MAX)
            await self._wait(request, cause)
        except (Unavailable, Upstream) as cause:
            self._back_off(request)
            await self._wait(request, cause)
        except ForetellError as refusal:
            await self._fail(request, f"{worker_code(refusal)}: {refusal.message}")
        except Exception:
            log.exception("creation step failed", request_id=request.request_id)
            self._back_off(request)
            await self._wait(request, InternalError())
        else:
            self._backoff_by_id.pop(request.request_id, None)

    def _back_off(self, request: CreationRequest, most_s: float = BACKOFF_S_MAX) -> None:
        backoff = self._backoff_by_id.setdefault(
            request.request_id, _Backoff(pauses_s(BACKOFF_S, most_s))
        )
        backoff.until_s = self._monotonic_s() + next(backoff.pauses)

    async def _wait(self, request: CreationRequest, cause: ForetellError) -> None:
        """Leave the request for the next pass, or fail it after its deadline."""
        options = self._context.options
        is_preparing = request.status is RequestStatus.PREPARE_RUNNING
        deadline_ms = options.prepare_deadline_ms if is_preparing else options.finalize_deadline_ms
        waited_ms = self._context.now_ms() - max(request.entered_at_ms, self._started_at_ms)
        log.debug(
            "creation request waits",
            request_id=request.request_id,
            cause=cause.message,
            ms=waited_ms,
        )
        until_ms = self._context.now_ms() - waited_ms + deadline_ms
        wait = StoredWait(worker_code(cause), cause.message, until_ms)
        if wait != request.wait:
            async with self._context.database.writing() as tx:
                await record_wait(tx, request, wait)
        if waited_ms > deadline_ms:
            gave_up = f"gave up after {waited_ms // 1000} s"
            await self._fail(request, f"{worker_code(cause)}: {cause.message} ({gave_up})")

    async def _fail(self, request: CreationRequest, message: str) -> None:
        log.warning("creation request failed", request_id=request.request_id, message=message)
        async with self._context.database.writing() as tx:
            await move_request(
                tx,
                request,
                RequestTrigger.FAIL,
                self._context.now_ms(),
                error_message=message,
            )
            await drop_images(tx, request.request_id)

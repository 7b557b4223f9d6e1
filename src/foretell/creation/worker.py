"""Background work of requests, resumed after any stop.

Start and recovery are one path: every round begins with the running rows. A step that waits for the
chain, the storage or the creator is retried until a deadline; then the request fails with the cause of
the wait. A step that is refused fails at once.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from foretell.creation import lost_markets
from foretell.creation.attempts import Attempts, CollateralShortfall
from foretell.creation.challenge import sweep_challenges
from foretell.creation.context import CreationContext
from foretell.creation.finalize import run_finalization
from foretell.creation.posting import run_posting
from foretell.creation.prepare import check_whitelist, run_preparation
from foretell.creation.refusals import worker_code
from foretell.domain.creation.preparation_bounds import UNPAID_COUNTED_MS
from foretell.domain.creation.request import RequestStatus, RequestTrigger
from foretell.domain.errors.creation import (
    CreatorNotWhitelisted,
    CreatorUnderfunded,
    RegistrationBlocked,
    RegistrationPending,
    TxPending,
)
from foretell.domain.errors.families import ForetellError, Unavailable, Upstream
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.refusals import InternalError
from foretell.runtime.loops import Loop, run_together
from foretell.runtime.worker import PollIntervals, run_watching_worker, run_worker
from foretell.store.creation.failed_requests import (
    drop_payloads,
    forget_failed,
    load_failed_before,
    load_failed_surplus,
    load_failed_with_payloads,
)
from foretell.store.creation.preparations import forget_sources
from foretell.store.creation.requests import (
    TOPIC,
    RunningRequest,
    StoredWait,
    load_request,
    load_running,
    move_request,
    record_waits,
)
from foretell.store.outbox.transactions import REGISTRATION

PACE: Final = PollIntervals(busy_s=1.0, idle_s=15.0)
SWEEP_INTERVAL_S: Final = 300.0
AT_ONCE_MAX: Final = 4

CLEANING: Final = PollIntervals(busy_s=1.0, idle_s=300.0)
FAILED_KEPT_MS: Final = 7 * 24 * 60 * 60 * 1000
"""How long a request that failed without a plan is shown."""
PLANNED_FAILED_KEPT_MS: Final = 30 * 24 * 60 * 60 * 1000
"""The same with a plan: its creator may have paid for it."""
FAILED_MAX: Final = 20_000
"""Of more requests that failed without a plan the oldest are forgotten before that."""
PAYLOADS_DROPPED_MAX: Final = 50
"""Payloads that one transaction deletes, each of up to 256 KiB and with up to 62 images."""
FORGOTTEN_MAX: Final = 500
"""Failed requests that one transaction deletes, and addresses of others."""

log = structlog.get_logger(__name__)


async def run(context: CreationContext) -> None:
    """Run until cancelled: the registrar's transactions, the requests, and the permanent storage."""
    loops: list[Loop] = [
        context.registrar.run,
        partial(_work, context),
        partial(lost_markets.run, context),
        partial(run_worker, "failed creation requests", partial(clean_failed, context), CLEANING),
        partial(run_worker, "addresses of plans", partial(clean_sources, context), CLEANING),
    ]
    if context.permanent_storage is not None:
        loops.append(partial(run_posting, context.blobs, context.permanent_storage))
    await run_together(loops)


async def clean_failed(context: CreationContext) -> bool:
    """Delete old failed requests, and what an earlier version kept of them; return whether there may be more.

    Payloads go first, because a row that has one takes long to read.
    """
    now_ms, database = context.now_ms(), context.database
    async with database.reading() as tx:
        kept = await load_failed_with_payloads(tx, PAYLOADS_DROPPED_MAX)
    if kept:
        async with database.writing() as tx:
            await drop_payloads(tx, kept)
        return True
    ends_ms = now_ms - FAILED_KEPT_MS, now_ms - PLANNED_FAILED_KEPT_MS
    async with database.reading() as tx:
        old = await load_failed_before(tx, *ends_ms, FORGOTTEN_MAX)
        if not old:
            old = await load_failed_surplus(tx, FAILED_MAX, FORGOTTEN_MAX)
    if old:
        async with database.writing() as tx:
            await forget_failed(tx, old)
    return bool(old)


async def clean_sources(context: CreationContext) -> bool:
    """Delete client addresses that count no longer; return whether there may be more."""
    before_ms = context.now_ms() - UNPAID_COUNTED_MS
    async with context.database.writing() as tx:
        return await forget_sources(tx, before_ms, FORGOTTEN_MAX) == FORGOTTEN_MAX


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


class RequestRunner:
    """Advances the running requests, one round after the other."""

    def __init__(
        self, context: CreationContext, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._context = context
        self._started_at_ms = context.now_ms()
        self._attempts = Attempts(monotonic_s)
        self._at_once = asyncio.Semaphore(AT_ONCE_MAX)
        self._waits: list[tuple[RunningRequest, StoredWait]] = []

    async def run_once(self) -> int:
        """Advance the running requests that are due as far as possible, and return how many run."""
        async with self._context.database.reading() as tx:
            running = await load_running(tx)
        await asyncio.gather(*map(self._attempt, self._attempts.due(running)))
        await self._record_waits()
        return len(running)

    async def _attempt(self, request: RunningRequest) -> None:
        """Take the next step of a request; wait, pause or fail if it does not succeed."""
        try:
            async with self._at_once:
                await self._step(request)
        except (RegistrationPending, TxPending) as cause:
            await self._wait(request, cause)
        except (CreatorNotWhitelisted, CreatorUnderfunded) as cause:
            self._attempts.pause(request, is_for_creator=True)
            if isinstance(cause, CreatorUnderfunded):
                shortfall = CollateralShortfall(cause.details["cost"], cause.details["held"])
                self._attempts.note_shortfall(request, shortfall)
            await self._wait(request, cause)
        except (Unavailable, Upstream) as cause:
            self._attempts.pause(request)
            await self._wait(request, cause)
        except ForetellError as refusal:
            await self._fail(request, f"{worker_code(refusal)}: {refusal.message}")
        except Exception:
            log.exception("creation step failed", request_id=request.request_id)
            self._attempts.pause(request)
            await self._wait(request, InternalError())
        else:
            self._attempts.end_wait(request)

    async def _step(self, running: RunningRequest) -> None:
        """Take the next step of a request, unless it has moved.

        Anyone can begin a preparation, so its creator is checked before it is loaded and parsed.
        """
        is_preparing = running.status is RequestStatus.PREPARE_RUNNING
        if is_preparing:
            await self._check_creator(running)
        async with self._context.database.reading() as tx:
            request = await load_request(tx, running.request_id)
        if request is not None and request.status is running.status:
            step = run_preparation if is_preparing else run_finalization
            await step(self._context, request)

    async def _check_creator(self, running: RunningRequest) -> None:
        """Refuse a creator without a whitelist, or with the collateral that did not suffice before."""
        creator, known = running.creator, self._attempts.shortfall(running)
        await check_whitelist(self._context, creator)
        if known is not None:
            held_units = await self._context.reader.collateral_units(creator)
            if decimal_text(held_units) == known.held:
                raise CreatorUnderfunded(checksum_address(creator), *known)

    async def _wait(self, request: RunningRequest, cause: ForetellError) -> None:
        """Leave the request for a later round, or fail it after its deadline.

        A creator has paid for a market that its operator's registrar cannot open: that one waits without an end.
        """
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
        is_endless = isinstance(cause, RegistrationBlocked)
        until_ms = None if is_endless else self._context.now_ms() - waited_ms + deadline_ms
        wait = StoredWait(worker_code(cause), cause.message, until_ms)
        if waited_ms > deadline_ms and not is_endless:
            gave_up = f"gave up after {waited_ms // 1000} s"
            await self._fail(request, f"{worker_code(cause)}: {cause.message} ({gave_up})")
        elif not self._attempts.has_wait(request, wait):
            self._waits.append((request, wait))

    async def _record_waits(self) -> None:
        """Store the waits that began in this round, all together."""
        waits, self._waits = self._waits, []
        if waits:
            async with self._context.database.writing() as tx:
                await record_waits(tx, waits)
        for request, wait in waits:
            self._attempts.note_wait(request, wait)

    async def _fail(self, request: RunningRequest, message: str) -> None:
        log.warning("creation request failed", request_id=request.request_id, message=message)
        async with self._context.database.writing() as tx:
            await move_request(
                tx,
                request,
                RequestTrigger.FAIL,
                self._context.now_ms(),
                error_message=message,
            )

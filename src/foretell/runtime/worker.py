"""The loop of a background worker: a step, a wait, and the next step, until it is cancelled.

A step that fails is repeated after a pause, which grows; no exception of a step ends the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from foretell.domain.errors.storage import StoreUnavailable
from foretell.runtime.backoff import pauses_s
from foretell.runtime.failures import FailureLog

RETRY_S: Final = 0.25
RETRY_S_MAX: Final = 5.0
"""Clients wait for some workers, such as the one that writes the tables: no pause may be long."""

T = TypeVar("T")

Step = Callable[[], Awaitable[bool]]
"""Does the work that is due, and returns whether more is due soon."""
Wait = Callable[[float], Awaitable[object]]
"""Waits this many seconds, or until there is work."""
SetUp = Callable[[], Awaitable[Wait]]
"""Sets up what a worker waits with, such as a watch on the tables."""


class PollIntervals(NamedTuple):
    """Seconds between two steps: while there is work, and while there is none."""

    busy_s: float
    idle_s: float


async def run_worker(
    name: str,
    step: Step,
    pace: PollIntervals,
    wait: Wait = asyncio.sleep,
    *,
    expected: tuple[type[Exception], ...] = (),
    pause: Wait = asyncio.sleep,
) -> None:
    """Run a step again and again until cancelled.

    `expected` failures are logged without a traceback, such as a node that does not answer, and so is a
    database that is away or has no room; `pause` waits after a failure, also when there is more work.
    """
    attempts = _Attempts(FailureLog(name), expected, pause)
    while True:
        is_busy = await attempts.until_success(step)
        await wait(pace.busy_s if is_busy else pace.idle_s)


async def run_watching_worker(
    name: str,
    step: Step,
    pace: PollIntervals,
    set_up: SetUp,
    *,
    expected: tuple[type[Exception], ...] = (),
) -> None:
    """Run a worker whose wait has to be set up before the first step; that is repeated too."""
    attempts = _Attempts(FailureLog(name), expected, asyncio.sleep)
    wait = await attempts.until_success(set_up)
    await run_worker(name, step, pace, wait, expected=expected)


class _Attempts(NamedTuple):
    """How failures are logged, and what waits between two attempts."""

    failures: FailureLog
    expected: tuple[type[Exception], ...]
    pause: Wait

    async def until_success(self, act: Callable[[], Awaitable[T]]) -> T:
        """Repeat an act until it does not fail, and return its result."""
        pauses = pauses_s(RETRY_S, RETRY_S_MAX)
        while True:
            try:
                result = await act()
            except Exception as error:  # noqa: BLE001 - the loop continues; the failure is logged
                is_expected = isinstance(error, (*self.expected, StoreUnavailable))
                self.failures.failed(error, is_expected=is_expected)
                await self.pause(next(pauses))
            else:
                self.failures.passed()
                return result

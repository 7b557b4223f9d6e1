"""The loop of a background worker: a step, a wait, and the next step, until it is cancelled.

A step that fails is repeated after a pause, which grows; no exception of a step ends the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from foretell.runtime.backoff import pauses_s
from foretell.runtime.failures import FailureLog

RETRY_S: Final = 0.25
RETRY_S_MAX: Final = 30.0

Step = Callable[[], Awaitable[bool]]
"""Does the work that is due, and returns whether more is due soon."""
Wait = Callable[[float], Awaitable[object]]
"""Waits this many seconds, or until there is work."""


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

    `expected` failures are logged without a traceback, such as a node that does not answer;
    `pause` waits after a failure, also when there is more work.
    """
    failures = FailureLog(name)
    pauses = pauses_s(RETRY_S, RETRY_S_MAX)
    has_failed = False
    while True:
        try:
            is_busy = await step()
        except Exception as error:  # noqa: BLE001 - the loop continues, and the failure is logged
            failures.failed(error, is_expected=isinstance(error, expected))
            has_failed = True
            await pause(next(pauses))
            continue
        if has_failed:
            failures.passed()
            pauses, has_failed = pauses_s(RETRY_S, RETRY_S_MAX), False
        await wait(pace.busy_s if is_busy else pace.idle_s)

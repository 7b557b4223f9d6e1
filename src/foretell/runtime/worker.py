"""The loop of a background worker: a step, a wait, and the next step, until it is cancelled.

A step that fails is repeated after a pause that grows; nothing that a step raises ends the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from foretell.runtime.backoff import pauses_s
from foretell.runtime.failures import FailureLog

RETRY_S: Final = 0.25
RETRY_S_MAX: Final = 30.0

Step = Callable[[], Awaitable[bool]]
"""Does what is due, and returns whether more is due soon."""
Wait = Callable[[float], Awaitable[object]]
"""Waits so many seconds, or until there is work."""


class Pace(NamedTuple):
    """Seconds between two steps: while there is work, and while there is none."""

    busy_s: float
    idle_s: float


async def run_worker(
    name: str,
    step: Step,
    pace: Pace,
    wait: Wait = asyncio.sleep,
    *,
    expected: tuple[type[Exception], ...] = (),
    pause: Wait = asyncio.sleep,
) -> None:
    """Run a step again and again until cancelled.

    `expected` are failures that are logged without a trace, such as a service that is away;
    `pause` waits after a failure, whatever there is to do.
    """
    failures = FailureLog(name)
    pauses = pauses_s(RETRY_S, RETRY_S_MAX)
    has_failed = False
    while True:
        try:
            is_busy = await step()
        except Exception as error:  # noqa: BLE001 - the loop goes on, and the failure is logged
            failures.failed(error, is_expected=isinstance(error, expected))
            has_failed = True
            await pause(next(pauses))
            continue
        if has_failed:
            failures.passed()
            pauses, has_failed = pauses_s(RETRY_S, RETRY_S_MAX), False
        await wait(pace.busy_s if is_busy else pace.idle_s)

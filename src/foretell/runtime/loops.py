"""Loops that run next to each other, and loops that are restarted after a failure."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

RETRY_S: Final = 1.0

Loop = Callable[[], Awaitable[None]]

log = structlog.get_logger(__name__)


async def restart_on_failure(name: str, loop: Loop) -> None:
    """Run a loop, and start it again after each failure, until cancelled."""
    while True:
        try:
            await loop()
        except Exception:
            log.exception("loop failed and is restarted", loop=name)
            await asyncio.sleep(RETRY_S)


async def run_together(loops: Iterable[Loop]) -> None:
    """Run loops until cancelled, or until one of them raises."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_coroutine(loop))


async def _coroutine(loop: Loop) -> None:
    await loop()

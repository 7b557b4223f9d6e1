"""Loops that a fault does not end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

RETRY_S: Final = 1.0

Loop = Callable[[], Awaitable[None]]

log = structlog.get_logger(__name__)


async def forever(name: str, loop: Loop) -> None:
    """Run a loop, again and again when it breaks off."""
    while True:
        try:
            await loop()
        except Exception:
            log.exception("loop broke off", loop=name)
            await asyncio.sleep(RETRY_S)


async def run_together(loops: Iterable[Loop]) -> None:
    """Run loops until cancelled, or until one of them ends with what it raises."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_coroutine(loop))


async def _coroutine(loop: Loop) -> None:
    await loop()

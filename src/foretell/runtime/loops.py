"""Loops that run next to each other."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

Loop = Callable[[], Awaitable[None]]


async def run_together(loops: Iterable[Loop]) -> None:
    """Run loops until cancelled, or until one of them raises; then all have ended.

    The group has a task of its own, because a group that fails leaves its task with a cancellation.
    In such a task `asyncio.timeout` of Python 3.11.2 raises CancelledError instead of TimeoutError.
    """
    await asyncio.create_task(_run_group(loops))


async def _run_group(loops: Iterable[Loop]) -> None:
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_coroutine(loop))


async def _coroutine(loop: Loop) -> None:
    await loop()

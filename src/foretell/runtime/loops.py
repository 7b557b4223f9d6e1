"""Loops that run next to each other."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

Loop = Callable[[], Awaitable[None]]


async def run_together(loops: Iterable[Loop]) -> None:
    """Run loops until cancelled, or until one of them raises."""
    async with asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(_coroutine(loop))


async def _coroutine(loop: Loop) -> None:
    await loop()

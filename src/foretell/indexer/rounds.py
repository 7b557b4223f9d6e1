"""Rounds that keep rolling aggregates: one after the other, with pauses that bound the part of the time they take."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from foretell.domain.errors.storage import StoreUnavailable
from foretell.runtime.worker import PollIntervals, run_worker

SHARE_MAX: Final = 0.1
"""The largest part of the time that rounds take: after a long one the pause is longer."""


async def run_rounds(name: str, interval_s: float, refresh: Callable[[], Awaitable[None]]) -> None:
    """Refresh so many seconds after each refresh, or later, until cancelled."""
    pace = PollIntervals(busy_s=0.0, idle_s=interval_s)
    await run_worker(name, partial(_round, interval_s, refresh), pace, expected=(StoreUnavailable,))


async def _round(interval_s: float, refresh: Callable[[], Awaitable[None]]) -> bool:
    began_s = time.monotonic()
    await refresh()
    took_s = time.monotonic() - began_s
    await asyncio.sleep(max(0.0, took_s / SHARE_MAX - took_s - interval_s))
    return False

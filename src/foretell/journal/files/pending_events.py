"""Ask an event loop whether an event waits for it: bytes of a client, or the result of a thread.

A loop waits for its events at one descriptor of the system, which can be polled like any other.
Neither asyncio nor uvloop has a public name for it; under a loop without it, nothing ever waits.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Any


def pending_events(loop: asyncio.AbstractEventLoop) -> Callable[[], bool]:
    """Return a function that returns whether an event waits for the loop, without waiting itself."""
    descriptor = _descriptor(loop)
    if descriptor is None:
        return lambda: False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return lambda: bool(poll.poll(0))


def _descriptor(loop: asyncio.AbstractEventLoop) -> int | None:
    """Return the descriptor of uvloop's backend, or of the selector of asyncio's loop."""
    uvloop_backend: Callable[[], int] | None = getattr(loop, "_get_backend_id", None)
    if uvloop_backend is not None:
        return uvloop_backend()
    selector: Any = getattr(loop, "_selector", None)
    if not hasattr(selector, "fileno"):
        return None
    descriptor: int = selector.fileno()
    return descriptor

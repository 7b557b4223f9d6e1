"""Threads beside an event loop, and those that the system may not start, as at a limit of processes.

Python raises a RuntimeError at such a limit, and leaves the work in the queue of its pool. Here that is the error of a
process that cannot be started, which callers treat as other failures of the system.
"""

import asyncio
import contextlib
import errno
import sys
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec, TypeVar

REFUSED_TEXT: Final = "can't start new thread"
DEMAND_AFTER_S: Final = 0.00002
"""A thread that waits for the interpreter demands it after so long; shorter than a turn of a busy loop."""

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


def let_threads_work() -> None:
    """Have threads of this process get the interpreter soon, however busy its event loop is.

    A thread demands the interpreter when it has waited for a whole interval, five milliseconds by default. uvloop gives
    it up for a moment in each turn, which wakes the thread, and has mostly taken it back by then, so that the thread
    begins to wait once more. Beside a loop that is never idle the thread of the journal waited for very many turns.
    """
    sys.setswitchinterval(DEMAND_AFTER_S)


@contextlib.contextmanager
def starting_thread() -> Iterator[None]:
    """Raise BlockingIOError in place of the RuntimeError of a thread that is not started."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != REFUSED_TEXT:
            raise
        raise _refusal() from error


def _refusal() -> BlockingIOError:
    return BlockingIOError(errno.EAGAIN, "the system starts no more threads")


async def run_in_thread(
    act: Callable[Parameters, Value], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Value:
    """Return what a function returns in another thread, or raise BlockingIOError if the system starts none.

    Then the function is not called later either, unless a thread has just become free for it.
    """
    is_refused = False

    def call() -> Value:
        if is_refused:
            raise _refusal()
        return act(*args, **kwargs)

    try:
        with starting_thread():
            return await asyncio.to_thread(call)
    except BlockingIOError:
        is_refused = True
        raise

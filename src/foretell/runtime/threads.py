"""Threads that the system may not start, as at a limit of processes.

Python raises a RuntimeError then, and leaves the work in the queue of its pool. Here that is the error of a
process that cannot be started, which callers treat as other failures of the system.
"""

import asyncio
import contextlib
import errno
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec, TypeVar

REFUSED_TEXT: Final = "can't start new thread"

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


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

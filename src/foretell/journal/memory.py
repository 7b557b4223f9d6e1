"""Memory while a journal is folded: almost all that is made then stays, and none of it is garbage."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def unsearched_memory() -> Iterator[None]:
    """Have nobody search the memory for circles of garbage meanwhile."""
    was_searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_searched:
            gc.enable()

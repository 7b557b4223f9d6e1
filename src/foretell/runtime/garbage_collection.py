"""Garbage collection settings of processes that keep many objects and free few.

The objects of an exchange (orders, accounts, code) form no reference cycles to free, so searching all of
them again and again is wasted work that grows with their number.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

YOUNG_OBJECTS_MAX: Final = 20_000
"""How many more objects are allocated than freed before the youngest generation is searched."""
COLLECTIONS_PER_GENERATION: Final = 20


def settle_memory() -> None:
    """Exclude what exists now from collection, and collect less often from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, COLLECTIONS_PER_GENERATION, COLLECTIONS_PER_GENERATION)


@contextlib.contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection during a replay: nearly all objects made then are kept."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

"""The memory that SQLite uses in this process, as a metric: most of it are pages that its connections keep.

It grows with the database until the caches of all connections are full, which takes hours, and then no more.
"""

import ctypes
import importlib.util
import math
from collections.abc import Callable
from functools import cache
from typing import Final

from prometheus_client import Gauge

SQLITE_MEMORY: Final = Gauge(
    "foretell_sqlite_memory_bytes",
    "memory of SQLite in this process, most of it pages of the database; 0 on PostgreSQL",
)
DRIVER: Final = "_sqlite3"
"""The module of Python that is linked with SQLite."""


def measure_sqlite() -> None:
    """Have the metrics of this process show the memory of SQLite from now on."""
    SQLITE_MEMORY.set_function(sqlite_bytes)


def sqlite_bytes() -> float:
    """Return the bytes that SQLite uses; not a number where its library has no such function to call."""
    memory_used = _memory_used()
    return math.nan if memory_used is None else float(memory_used())


@cache
def _memory_used() -> Callable[[], int] | None:
    spec = importlib.util.find_spec(DRIVER)
    try:
        library = ctypes.CDLL(spec.origin if spec is not None and spec.has_location else None)
        memory_used = library.sqlite3_memory_used
    except (OSError, AttributeError):
        return None
    memory_used.argtypes, memory_used.restype = [], ctypes.c_int64
    found: Callable[[], int] = memory_used
    return found

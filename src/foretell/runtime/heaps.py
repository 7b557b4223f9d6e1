"""The heaps of the C library's allocator, which gives almost every thread one of its own.

Each connection to SQLite has a thread, whose reads allocate pages and rows and free them again. A heap keeps most of
what its largest read needed, so a server with a heap for each connection kept that for all of them, and grew for hours.
"""

import ctypes
from typing import Final

HEAPS_MAX: Final = 2
"""The first is that of the thread of the event loop. The threads after it take the two in turn."""
_ARENA_MAX: Final = -8
"""The number of this setting in the C library (`M_ARENA_MAX` in `malloc.h`)."""


def share_heaps() -> None:
    """Let the threads of this process share heaps; with another library than glibc, nothing changes.

    It must be called before there are threads: each keeps the heap that it has.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    mallopt(_ARENA_MAX, HEAPS_MAX)

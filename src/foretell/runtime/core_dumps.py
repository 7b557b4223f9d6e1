"""No core dumps: the memory of a process has its keys, and a dump would leave them on a disk."""

import contextlib
import resource
from typing import Final

CORE_BYTES_MAX: Final = 1
"""Less than a page, so that no dump is written. To a program that collects dumps Linux sends none at 1, but does at 0."""


def forbid_core_dumps() -> None:
    """Leave no dump of this process and of those that it starts when they crash."""
    with contextlib.suppress(ValueError, OSError):  # the limit is lower already
        resource.setrlimit(resource.RLIMIT_CORE, (CORE_BYTES_MAX, CORE_BYTES_MAX))

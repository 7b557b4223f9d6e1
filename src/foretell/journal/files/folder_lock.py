"""The lock of a folder that one process uses at a time."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from foretell.domain.errors.storage import FolderInUse
from foretell.runtime.files import OWNER_ONLY

PROCESS_ID_DIGITS_MAX: Final = 10


def lock_folder(folder: Path) -> int:
    """Return a handle that locks the folder against every other process, or refuse.

    The lock ends with the handle or with the process, whichever is first. The file holds the id of the
    process, for the refusal alone.
    """
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _note_process(handle)
        return handle
    holder = os.pread(handle, PROCESS_ID_DIGITS_MAX, 0)
    os.close(handle)
    raise FolderInUse(str(folder), int(holder) if holder.isdigit() else None)


def _note_process(handle: int) -> None:
    with contextlib.suppress(OSError):  # a full disk: the lock holds all the same
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)


def is_locked(folder: Path) -> bool:
    """Return whether a process uses the folder now."""
    path = folder / "lock"
    if not path.exists():
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def unlock_folder(handle: int) -> None:
    """Release the folder for other processes."""
    os.close(handle)

"""Files that are whole after a crash: with all of the old content, or all of the new."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from foretell.runtime.folders import sync_folder

OWNER_ONLY: Final = 0o600
"""The mode of a file that only its owner may read and write."""
PARTIAL_SUFFIX: Final = ".partial"


def write_atomically(path: Path, *parts: bytes, draft: Path | None = None) -> None:
    """Replace a file in one step, and return when its content and its name are on the disk.

    Only its owner may read it. `draft` is the temporary file, in the same folder. By default it has a
    random name, so that several processes may write the same file; with a fixed one, the next write
    replaces what a crash left.
    """
    if draft is None:
        handle, name = tempfile.mkstemp(PARTIAL_SUFFIX, f"{path.name}.", path.parent)
        draft = Path(name)
    else:
        handle = _open_new(draft)
    try:
        _write(handle, parts)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_synced(path: Path, *parts: bytes) -> None:
    """Write a file that only its owner may read, in place of any of that name; sync its content."""
    _write(_open_new(path), parts)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process is in here with this folder: for short work, which ends or dies."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _open_new(path: Path) -> int:
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)


def _write(handle: int, parts: tuple[bytes, ...]) -> None:
    with os.fdopen(handle, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())

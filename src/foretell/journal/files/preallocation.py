"""Preallocation of segments: a spare, and a reserve for when the disk is full.

Both are filled with zeros in a thread of their own. When the disk has no room for a new spare, the
reserve becomes the spare, so that cancels can still be written for a while. From then on capacity
is scarce, until the disk has room for both files again.
"""

import errno
import os
import threading
from pathlib import Path
from typing import Final

import structlog

from foretell.runtime.files import OWNER_ONLY

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
FULL_RETRY_S: Final = 1.0
SPARE_NAME: Final = "spare"
RESERVE_NAME: Final = "reserve"

_ZEROS: Final = bytes(1024 * 1024)

log = structlog.get_logger(__name__)


class DiskFull(Exception):
    """The disk has no room for this now; the same may be tried again."""


class SegmentPool:
    """The spare and the reserve of a folder, each as long as a segment."""

    # A thread fills both files, since zeros for a segment take longer than a sync may. It alone
    # makes a spare and touches the reserve; the journal's writer alone renames a spare. What both
    # read is under `_changes`, which is not held while a file is filled.

    def __init__(
        self, folder: Path, segment_bytes: int, *, full_retry_s: float = FULL_RETRY_S
    ) -> None:
        self._spare, self._reserve = folder / SPARE_NAME, folder / RESERVE_NAME
        self._segment_bytes = segment_bytes
        self.full_retry_s = full_retry_s
        self._changes = threading.Condition()
        self._has_spare = self._has_reserve = False
        self._is_closing = False
        self._failure: Exception | None = None
        self.is_scarce = False
        self._filler = threading.Thread(target=self._run, name="preallocation", daemon=True)
        self._filler.start()

    @property
    def is_filled(self) -> bool:
        """Whether the spare and the reserve are both there."""
        return self._has_spare and self._has_reserve

    def take(self) -> Path:
        """Return the spare, after waiting while it is filled, or refuse because the disk is full.

        The caller renames it, and then calls `taken`.
        """
        with self._changes:
            self._changes.wait_for(lambda: self._has_spare or self._failure or self.is_scarce)
            if self._failure is not None:
                raise self._failure
            if not self._has_spare:
                raise DiskFull
            return self._spare

    def taken(self) -> None:
        """Begin to fill the next spare."""
        with self._changes:
            self._has_spare = False
            self._changes.notify_all()

    def close(self) -> None:
        """Wait for the filling to end."""
        with self._changes:
            self._is_closing = True
            self._changes.notify_all()
        self._filler.join()

    def _run(self) -> None:
        while self._wait_for_work():
            try:
                self._fill_missing()
            except OSError as error:
                if error.errno in FULL:
                    self._use_reserve()
                else:
                    self._fail(error)
            except Exception as error:  # noqa: BLE001 - it is raised where the spare is taken
                self._fail(error)

    def _wait_for_work(self) -> bool:
        """Wait until a file is missing, and on a full disk for the next try; return whether to continue."""
        with self._changes:
            if self.is_scarce and not self._is_closing:
                self._changes.wait(self.full_retry_s)
            self._changes.wait_for(lambda: self._is_closing or not self.is_filled)
            return not self._is_closing and self._failure is None

    def _fill_missing(self) -> None:
        if not self._has_spare:
            _fill(self._spare, self._segment_bytes)
            with self._changes:
                self._has_spare = True
                self._changes.notify_all()
        if not self._has_reserve:
            _fill(self._reserve, self._segment_bytes)
        with self._changes:
            self._has_reserve = True
            if self.is_scarce:
                log.warning("disk has room again")
            self.is_scarce = False

    def _use_reserve(self) -> None:
        """Make the reserve the spare; a file that could not be filled gives back its room."""
        with self._changes:
            if not self.is_scarce:
                log.error("disk full", left_bytes=self._segment_bytes)
            self.is_scarce = True
            if self._has_spare:
                self._reserve.unlink(missing_ok=True)
            elif self._has_reserve:
                self._reserve.rename(self._spare)
                self._has_spare, self._has_reserve = True, False
            else:
                self._spare.unlink(missing_ok=True)
            self._changes.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._changes:
            self._failure = error
            self._changes.notify_all()


def _fill(path: Path, size_bytes: int) -> None:
    """Create a synced file of zeros; one that exists keeps the room that it has.

    Room is allocated before anything is written, so that a disk that is nearly full is not filled.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    try:
        os.ftruncate(handle, min(os.fstat(handle).st_size, size_bytes))
        os.posix_fallocate(handle, 0, size_bytes)
        for start in range(0, size_bytes, len(_ZEROS)):
            write_at(handle, _ZEROS[: size_bytes - start], start)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_at(handle: int, data: bytes | memoryview, offset: int) -> None:
    """Write all of the data, in as many calls as that takes."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written

"""Files of zeros that wait to become segments: the spare, and the reserve for when the disk is full.

Both are filled beside the writer. When the disk has no room for a spare, the reserve becomes it: so
what frees people from their orders can still be written for a while. From then on there is little
room, until the disk takes both files again.
"""

import errno
import os
import threading
from pathlib import Path
from typing import Final

import structlog

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

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._spare, self._reserve = folder / SPARE_NAME, folder / RESERVE_NAME
        self._segment_bytes = segment_bytes
        self._changes = threading.Condition()
        self._has_spare = self._has_reserve = False
        self._is_closing = False
        self._failure: Exception | None = None
        self.is_scarce = False
        self._filler = threading.Thread(target=self._fill_for_ever, name="blanks", daemon=True)
        self._filler.start()

    def take(self) -> Path:
        """Return the spare, waiting while it is filled, or refuse because the disk is full.

        Whoever has given it another name says so with `taken`.
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

    def _fill_for_ever(self) -> None:
        while self._wait_for_work():
            try:
                self._fill_what_lacks()
            except OSError as error:
                if error.errno in FULL:
                    self._make_do()
                else:
                    self._fail(error)
            except Exception as error:  # noqa: BLE001 - it is raised where the spare is taken
                self._fail(error)

    def _wait_for_work(self) -> bool:
        """Wait until something lacks, or for room while the disk is full; say whether to go on."""
        with self._changes:
            if self.is_scarce and not self._is_closing:
                self._changes.wait(FULL_RETRY_S)
            self._changes.wait_for(
                lambda: self._is_closing or not (self._has_spare and self._has_reserve)
            )
            return not self._is_closing and self._failure is None

    def _fill_what_lacks(self) -> None:
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

    def _make_do(self) -> None:
        """Let the reserve be the spare; what could not be filled gives back what it took."""
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
    """Make a synced file of zeros; one that is there keeps the room that it has.

    Room is asked for before anything is written, so a disk that is nearly full is not filled.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(handle, min(os.fstat(handle).st_size, size_bytes))
        os.posix_fallocate(handle, 0, size_bytes)
        for start in range(0, size_bytes, len(_ZEROS)):
            write_at(handle, _ZEROS[: size_bytes - start], start)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_at(handle: int, data: bytes | bytearray, offset: int) -> None:
    """Write all of it, however many calls that takes."""
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written

"""A disk behind a page cache whose syncs can fail, with the files of a real folder as the cache.

As Linux does: a sync writes the pages that were changed since the last one. One that fails drops the change of
each page from its list, so the next sync succeeds without it, while a read still returns it until the power is cut.
"""

import errno
import os
import stat
from collections import defaultdict
from pathlib import Path

import pytest

PAGE_BYTES = 4096


class CachedDisk:
    """The disk of a folder: what it holds of each file, and under which names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.failing: set[str] = set()
        """Names of files, and "." for the folder itself, whose next sync fails."""
        self._stored: dict[int, dict[int, bytes]] = defaultdict(dict)
        self._changed: dict[int, set[int]] = defaultdict(set)
        self._names: dict[str, int] = {}
        self._pwrite, self._pread = os.pwrite, os.pread
        monkeypatch.setattr(os, "pwrite", self._write)
        monkeypatch.setattr(os, "fdatasync", self._sync)
        monkeypatch.setattr(os, "fsync", self._sync)

    def _write(self, handle: int, data: bytes | memoryview, offset: int) -> int:
        written = self._pwrite(handle, data, offset)
        self._changed[os.fstat(handle).st_ino].update(_pages(offset, offset + written))
        return written

    def _sync(self, handle: int) -> None:
        status = os.fstat(handle)
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        if stat.S_ISDIR(status.st_mode):
            self._fail_if_due(".")
            self._names = self._inode_by_name()
            return
        stored, changed = self._stored[status.st_ino], self._changed.pop(status.st_ino, set())
        self._fail_if_due(name)
        if not (stored or changed):  # a new file that was not written by `pwrite`
            changed = set(_pages(0, status.st_size))
        for page in changed:
            stored[page] = self._pread(handle, PAGE_BYTES, page * PAGE_BYTES)

    def _fail_if_due(self, name: str) -> None:
        if name in self.failing:
            self.failing.remove(name)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def cut_power(self) -> None:
        """Leave in the folder what the disk holds alone."""
        kept = {name: self._stored[inode] for name, inode in self._names.items()}
        for path in self.folder.iterdir():
            path.unlink()
        for name, stored in kept.items():
            pages = range(max(stored, default=-1) + 1)
            content = b"".join(stored.get(page, bytes(PAGE_BYTES)) for page in pages)
            (self.folder / name).write_bytes(content)

    def _inode_by_name(self) -> dict[str, int]:
        with os.scandir(self.folder) as entries:
            return {entry.name: entry.inode() for entry in entries}


def _pages(begin: int, end: int) -> range:
    return range(begin // PAGE_BYTES, -(-end // PAGE_BYTES))

"""Disks that fail a test: they are full, or damage a file at random places."""

import contextlib
import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

SECTOR_BYTES = 512

Damage = Callable[[random.Random, bytes], bytes]


class SmallDisk:
    """A folder with files that grow to this many bytes together; the rest is the real disk."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bytes_max = 10**9
        self.takes_writes = True
        self.refused_file = ""
        self.bytes_before_refusal = 0
        self.refusals = 0
        self._fallocate, self._pwrite = os.posix_fallocate, os.pwrite
        monkeypatch.setattr(os, "posix_fallocate", self.posix_fallocate)
        monkeypatch.setattr(os, "pwrite", self.pwrite)

    def fill(self) -> None:
        """Have no room for files that grow; existing bytes can be overwritten."""
        self.bytes_max = 0

    def heal(self) -> None:
        """Have room again."""
        self.bytes_max, self.takes_writes, self.refused_file = 10**9, True, ""

    def posix_fallocate(self, handle: int, offset: int, size: int) -> None:
        self._check(handle, offset + size)
        self._fallocate(handle, offset, size)

    def pwrite(self, handle: int, data: bytes, offset: int) -> int:
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        if not self.takes_writes or name == self.refused_file:
            if self.bytes_before_refusal:
                self._pwrite(handle, data[: self.bytes_before_refusal], offset)
            self._refuse()
        self._check(handle, offset + len(data))
        return self._pwrite(handle, data, offset)

    def _check(self, handle: int, end: int) -> None:
        growth = max(0, end - os.fstat(handle).st_size)
        if growth and self.used_bytes() + growth > self.bytes_max:
            self._refuse()

    def used_bytes(self) -> int:
        """Return the size of all files together; one may be removed during the loop."""
        used = 0
        for path in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                used += path.stat().st_size
        return used

    def _refuse(self) -> None:
        self.refusals += 1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def flip(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]


def scribble(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 64)
    return (raw[:at] + rng.randbytes(count) + raw[at + count :])[: len(raw)]


def zero(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 2_000)
    return (raw[:at] + bytes(count) + raw[at + count :])[: len(raw)]


def truncate(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def misplace(rng: random.Random, raw: bytes) -> bytes:
    at, source, count = (rng.randrange(len(raw)) for _ in range(3))
    return (raw[:at] + raw[source : source + count] + raw[at + count :])[: len(raw)].ljust(
        len(raw), b"\x00"
    )


def drop(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 600)
    return (raw[:at] + raw[at + count :]).ljust(len(raw), b"\x00")


def repeat(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 600)
    return (raw[: at + count] + raw[at:])[: len(raw)]


KINDS: list[Damage] = [flip, scribble, zero, truncate, misplace, drop, repeat]

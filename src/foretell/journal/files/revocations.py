"""The log of revoked API keys, and of deleted builders' and read-only keys: a file beside the journal, which the database cannot take back.

A database that is restored from an older copy has keys as active that were revoked since. Every revocation is
here, durable, before it is answered, and a start revokes again what the database does not know.

A line has the CRC-32 of its JSON in hex, a space and the JSON. A last line without its end was never
acknowledged, and is removed. Several processes of one data folder append to one file, each under its lock.

Generations of one index follow each other: each begins with the end of the one before. So the line of the
last one says that all of them are revoked, and a start removes the lines of the others.
"""

import enum
import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from foretell.domain.errors.storage import JournalDamaged
from foretell.domain.values.credentials import KeyIndex
from foretell.domain.values.hexadecimal import Address
from foretell.runtime.files import OWNER_ONLY, PARTIAL_SUFFIX, write_atomically
from foretell.runtime.folders import sync_folder

FILE: Final = "revocations.log"
COMPACTED_BYTES_MIN: Final = 64 * 1024
"""Size from which on a start shortens the file, if that removes at least half of its lines."""
_CHECKSUM_CHARS: Final = 8


class LoggedRevocation(msgspec.Struct, frozen=True, kw_only=True):
    """A revoked key: all that its row needs, and the epoch of the keys that it belongs to.

    The earlier generations of its index are revoked as well.
    """

    epoch: str
    key_id: str
    chain_id: int
    address: str
    nonce: str
    generation: int
    created_at_ms: int
    revoked_at_ms: int
    signed_at_s: int | None

    @property
    def index(self) -> KeyIndex:
        """The index that the key was derived from."""
        return KeyIndex(self.chain_id, Address(self.address), int(self.nonce), self.generation)


class DeletedKind(enum.StrEnum):
    """Kinds of keys that an address deletes without a generation that follows."""

    BUILDER = "builder"
    READONLY = "readonly"


class LoggedDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted builder's key, or read-only key by its hash: all that its row needs, and its epoch."""

    kind: DeletedKind
    epoch: str
    key_id: str
    address: str
    salt: str
    created_at_ms: int
    deleted_at_ms: int


class _Line(msgspec.Struct):
    kind: str | None = None


LoggedKey = LoggedRevocation | LoggedDeletion


class RevocationLog:
    """The file of a data folder; it is made with its first revocation."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def append(self, revocation: LoggedKey) -> None:
        """Write a revocation or a deletion, and return once it is durable; it blocks, so call it in a thread.

        If the disk refuses a part of it, nothing of it stays.
        """
        handle = self._opened()
        try:
            end = _remove_torn_line(handle)
            try:
                _write_at(handle, _line(revocation), end)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
        # Not for a new file alone: the process that made it may have ended before it synced the name.
        sync_folder(self._path.parent)

    def _opened(self) -> int:
        """Return the file with its lock; if it was replaced during the wait, the file in its place."""
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if self._path.exists() and os.path.samestat(os.fstat(handle), self._path.stat()):
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def compact(self, *, bytes_min: int = COMPACTED_BYTES_MIN) -> int:
        """Remove the lines that a later line makes needless, and return how many; it blocks.

        A crash leaves the old file or the new one, each of which revokes the same keys.
        """
        if not self._path.exists() or self._path.stat().st_size < bytes_min:
            return 0
        handle = self._opened()
        try:
            _remove_torn_line(handle)
            logged = list(self.read())
            kept = compacted(logged)
            removed = len(logged) - len(kept)
            if 2 * removed < len(logged):
                return 0
            draft = self._path.with_name(FILE + PARTIAL_SUFFIX)
            write_atomically(self._path, *map(_line, kept), draft=draft)
            return removed
        finally:
            os.close(handle)

    def read(self) -> Iterator[LoggedKey]:
        """Yield every revocation and deletion, the oldest first; refuse a damaged line."""
        if not self._path.exists():
            return
        offset = 0
        with self._path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield self._parse(line[:-1], offset)
                offset += len(line)

    def _parse(self, line: bytes, offset: int) -> LoggedKey:
        checksum, content = line[:_CHECKSUM_CHARS], line[_CHECKSUM_CHARS + 1 :]
        if checksum != _checksum(content):
            raise JournalDamaged(self._path.name, offset, "the line does not match its checksum")
        if msgspec.json.decode(content, type=_Line).kind is None:
            return msgspec.json.decode(content, type=LoggedRevocation)
        return msgspec.json.decode(content, type=LoggedDeletion)


def compacted(logged: Iterable[LoggedKey]) -> list[LoggedKey]:
    """Return the lines that revoke the same keys: of each index its last generation, and all deletions.

    The line that stays has the latest times of those that go, which a new request must be younger than.
    """
    kept: dict[object, LoggedKey] = {}
    for each in logged:
        if isinstance(each, LoggedDeletion):
            kept.setdefault((each.epoch, each.kind, each.key_id), each)
            continue
        place = (each.epoch, each.index._replace(generation=0))
        before = kept.get(place)
        assert before is None or isinstance(before, LoggedRevocation)
        kept[place] = each if before is None else _later(before, each)
    return list(kept.values())


def _later(one: LoggedRevocation, other: LoggedRevocation) -> LoggedRevocation:
    last = max(one, other, key=lambda each: each.generation)
    signed = [each.signed_at_s for each in (one, other) if each.signed_at_s is not None]
    return msgspec.structs.replace(
        last,
        revoked_at_ms=max(one.revoked_at_ms, other.revoked_at_ms),
        signed_at_s=max(signed, default=None),
    )


def _line(revocation: LoggedKey) -> bytes:
    content = msgspec.json.encode(revocation)
    return _checksum(content) + b" " + content + b"\n"


def _checksum(content: bytes) -> bytes:
    return f"{zlib.crc32(content):0{_CHECKSUM_CHARS}x}".encode()


def _remove_torn_line(handle: int) -> int:
    """Cut a last line without its end off, and return where the file ends then."""
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return size
    end = os.pread(handle, size, 0).rfind(b"\n") + 1
    os.ftruncate(handle, end)
    return end


def _write_at(handle: int, line: bytes, offset: int) -> None:
    """Write all of a line; a full disk may take it in part."""
    written = 0
    while written < len(line):
        written += os.pwrite(handle, line[written:], offset + written)

"""The log of revoked API keys, and of deleted builders' and read-only keys: a file beside the journal, which the database cannot take back.

A database that is restored from an older copy has keys as active that were revoked since. Every revocation is
here, durable, before it is answered, and a start revokes again what the database does not know.

A line has the CRC-32 of its JSON in hex, a space and the JSON. A last line without its end was never
acknowledged, and is removed. Several processes of one data folder append to one file, each under its lock.
"""

import enum
import fcntl
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from foretell.domain.errors.storage import JournalDamaged
from foretell.domain.values.credentials import KeyIndex
from foretell.domain.values.hexadecimal import Address
from foretell.runtime.files import OWNER_ONLY
from foretell.runtime.folders import sync_folder

FILE: Final = "revocations.log"
_CHECKSUM_CHARS: Final = 8


class LoggedRevocation(msgspec.Struct, frozen=True, kw_only=True):
    """A revoked key: all that its row needs, and the epoch of the keys that it belongs to."""

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
        is_new = not self._path.exists()
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            end = _remove_torn_line(handle)
            try:
                _write_at(handle, _line(revocation), end)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
        if is_new:
            sync_folder(self._path.parent)

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

"""Storage of signed data items on this machine, each under its id and checked on every read.

The scheme of the addresses is `local`, because this is one disk, or that of a permanent storage
which has the items too: `ar`, where a bundler keeps them under the same ids, or `ipfs`, where an id
is the hash of the content. Then an item has a mark from its storing until that storage has it, and
a note after that. An interrupted storing is repeated. A folder may have items of several kinds; all
of them can be read.

An item is written to a partial file, synced and renamed, so a file is always complete. The digest
of its data is stored next to it, because the id is a hash of the signature, not of the data.
"""

import asyncio
import contextlib
import hashlib
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from foretell.domain.creation.content_ids import BLOCK_BYTES_MAX
from foretell.domain.creation.data_items import DataItem, parse_item
from foretell.domain.creation.storages import Storage
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.storage import (
    BlobDamaged,
    BlobNotFound,
    ItemTooLarge,
    StorageFull,
    StorageUnavailable,
)
from foretell.runtime.files import PARTIAL_SUFFIX, write_atomically
from foretell.runtime.folders import disk_room, sync_folder
from foretell.runtime.threads import run_in_thread

UNSENT_PER_READ_MAX: Final = 100
ITEM_BYTES_MAX: Final = 4 * 1024 * 1024
FREE_BYTES_MIN: Final = 1024 * 1024 * 1024
FREE_PART_MIN: Final = 0.05
"""Of its disk a store leaves this part, or FREE_BYTES_MIN if that is less, to the journal and the database."""

_DIGEST_SUFFIX: Final = ".sha256"
_SENT_SUFFIX: Final = ".sent"


class BlobStore:
    """A folder of items, which may go to a permanent storage too."""

    def __init__(self, folder: Path, storage: Storage = Storage.LOCAL) -> None:
        self._folder = folder
        self._unsent = folder / "unsent"
        self.storage = storage

    def uri(self, item_id: str) -> str:
        """Return the address of an item, with the scheme of its storage."""
        return f"{self.storage}://{item_id}"

    async def store(self, item: DataItem) -> str:
        """Store an item permanently, and return its id; storing it again changes nothing."""
        if len(item.raw) > ITEM_BYTES_MAX or len(item.data) > self._data_bytes_max:
            raise ItemTooLarge(min(ITEM_BYTES_MAX, self._data_bytes_max))
        item_id = self.storage.id_of(item)
        try:
            await run_in_thread(self._write, item, item_id)
        except OSError as error:
            raise _unavailable(error) from error
        return item_id

    async def check_room(self) -> None:
        """Refuse with StorageFull while the disk is nearly full, so that pictures of creators stop no orders.

        It is for items that cost their creators nothing yet: `store` takes others as long as there is any room.
        """
        try:
            is_nearly_full = await run_in_thread(self._is_nearly_full)
        except OSError as error:
            raise _unavailable(error) from error
        if is_nearly_full:
            raise StorageFull

    async def load(self, item_id: str) -> DataItem:
        """Return an item, checked against its id and the stored digest of its data."""
        if not any(storage.has_form(item_id) for storage in Storage):
            raise BlobNotFound(item_id)
        try:
            return await run_in_thread(self._read, item_id)
        except FileNotFoundError as error:
            raise BlobNotFound(item_id) from error
        except OSError as error:
            raise _unavailable(error) from error
        except MalformedBody as error:
            raise BlobDamaged(item_id) from error

    async def unsent(self) -> list[str]:
        """Return ids of items that the permanent storage does not have yet, the oldest first."""
        return await asyncio.to_thread(self._read_unsent)

    async def never_sent(self) -> AsyncIterator[str]:
        """Yield the file names of all items without a note, in no order, a bounded batch per read.

        Those from before there was a permanent storage, and of another storage, are among them.
        """
        names = self._names_never_sent()
        while batch := await asyncio.to_thread(_take, names):
            for name in batch:
                yield name

    async def id_in_file(self, name: str) -> str | None:
        """Return the id of the item in a file; None if the item is not one of this storage.

        Raises BlobDamaged with the file's name, and StorageUnavailable.
        """
        try:
            return await run_in_thread(self._read_id, name)
        except OSError as error:
            raise _unavailable(error, f"{name}: ") from error
        except MalformedBody as error:
            raise BlobDamaged(name) from error

    async def note_sent(self, item_id: str) -> None:
        """Note that the permanent storage has an item."""
        await asyncio.to_thread(self._note_sent, item_id)

    async def postpone(self, item_id: str) -> None:
        """Let an item that cannot be sent wait behind all others."""
        await asyncio.to_thread(self._postpone, item_id)

    def _is_nearly_full(self) -> bool:
        _, total, free = disk_room(self._folder)
        return free < min(FREE_BYTES_MIN, total * FREE_PART_MIN)

    def _postpone(self, item_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._mark(item_id))

    def _note_sent(self, item_id: str) -> None:
        write_atomically(self._path(item_id).with_suffix(_SENT_SUFFIX), b"")
        self._mark(item_id).unlink(missing_ok=True)

    def _read_unsent(self) -> list[str]:
        if not self._unsent.is_dir():
            return []
        marks: list[tuple[int, str]] = []
        for path in self._unsent.iterdir():
            if path.suffix != PARTIAL_SUFFIX:
                with contextlib.suppress(FileNotFoundError):  # another process has sent it
                    marks.append((path.stat().st_mtime_ns, path.read_text()))
        waiting = [item_id for _, item_id in sorted(marks) if self.storage.has_form(item_id)]
        return waiting[:UNSENT_PER_READ_MAX]

    def _names_never_sent(self) -> Iterator[str]:
        for path in self._folder.glob("??/*"):
            if not path.suffix and not path.with_suffix(_SENT_SUFFIX).exists():
                yield path.name

    def _read_id(self, name: str) -> str | None:
        path = self._folder / name[:2] / name
        item = parse_item(path.read_bytes())
        if len(item.data) > self._data_bytes_max:
            return None
        # An item of another storage has another id there, under which it is stored.
        item_id = self.storage.id_of(item)
        return item_id if self._path(item_id) == path else None

    @property
    def _data_bytes_max(self) -> int:
        return BLOCK_BYTES_MAX if self.storage is Storage.IPFS else ITEM_BYTES_MAX

    def _mark(self, item_id: str) -> Path:
        return self._unsent / self._path(item_id).name

    def _write(self, item: DataItem, item_id: str) -> None:
        path = self._path(item_id)
        digest_path = path.with_suffix(_DIGEST_SUFFIX)
        digest = hashlib.sha256(item.data).hexdigest().encode()
        if not (_has(path, item.raw) and _has(digest_path, digest)):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(digest_path, digest)
            write_atomically(path, item.raw)
            sync_folder(self._folder)
        if self.storage.is_permanent and not path.with_suffix(_SENT_SUFFIX).exists():
            self._unsent.mkdir(exist_ok=True)
            write_atomically(self._mark(item_id), item_id.encode())

    def _read(self, item_id: str) -> DataItem:
        path = self._path(item_id)
        item = parse_item(path.read_bytes())
        digest = path.with_suffix(_DIGEST_SUFFIX).read_bytes().decode(errors="replace")
        if hashlib.sha256(item.data).hexdigest() != digest or not _is_of(item, item_id):
            raise BlobDamaged(item_id)
        return item

    def _path(self, item_id: str) -> Path:
        """Return the path of an item: a hash of its id, since file systems may ignore case."""
        digest = hashlib.sha256(item_id.encode()).hexdigest()
        return self._folder / digest[:2] / digest


def _unavailable(error: OSError, of: str = "") -> StorageUnavailable:
    """Return what a failure of the disk is for those who store or read an item."""
    return StorageUnavailable(of + (error.strerror or type(error).__name__))


def _take(names: Iterator[str]) -> list[str]:
    return list(itertools.islice(names, UNSENT_PER_READ_MAX))


def _is_of(item: DataItem, item_id: str) -> bool:
    """Return whether an item has an id, of whichever storage."""
    is_small = len(item.data) <= BLOCK_BYTES_MAX
    return item.item_id == item_id or (is_small and Storage.IPFS.id_of(item) == item_id)


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False

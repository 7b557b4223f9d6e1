"""Keeps signed data items on this machine, each under its id, and checks them when they are read.

This is storage on one disk, and says so: its scheme is `local`. The bytes are those that a permanent
network takes, so they can be posted there later under the same id.

An item is there once its file is: it is written beside its place, synced, and moved in. The digest
of its data lies next to it, for the id names the signature and not the data.
"""

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

from foretell.domain.creation.data_items import ID_CHARS, DataItem, parse_item
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.storage import BlobDamaged, BlobNotFound, StorageUnavailable

SCHEME: Final = "local"
ITEM_BYTES_MAX: Final = 4 * 1024 * 1024

_ID_SIGNS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_DIGEST_SUFFIX: Final = ".sha256"
_PARTIAL_SUFFIX: Final = ".partial"


def blob_uri(item_id: str) -> str:
    """Return the address of an item, which says where it is stored."""
    return f"{SCHEME}://{item_id}"


class BlobStore:
    """A folder of items."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def store(self, item: DataItem) -> None:
        """Keep an item for good; keeping it again changes nothing."""
        if len(item.raw) > ITEM_BYTES_MAX:
            raise StorageUnavailable(f"an item has at most {ITEM_BYTES_MAX} bytes")
        try:
            await asyncio.to_thread(self._write, item)
        except OSError as error:
            raise StorageUnavailable(error.strerror or type(error).__name__) from error

    async def load(self, item_id: str) -> DataItem:
        """Return an item, checked against its id and the digest that was kept of its data."""
        if len(item_id) != ID_CHARS or not _ID_SIGNS.issuperset(item_id):
            raise BlobNotFound(item_id)
        try:
            return await asyncio.to_thread(self._read, item_id)
        except FileNotFoundError as error:
            raise BlobNotFound(item_id) from error
        except OSError as error:
            raise StorageUnavailable(error.strerror or type(error).__name__) from error
        except MalformedBody as error:
            raise BlobDamaged(item_id) from error

    def _write(self, item: DataItem) -> None:
        place = self._place(item.item_id)
        digest_place = place.with_suffix(_DIGEST_SUFFIX)
        digest = hashlib.sha256(item.data).hexdigest().encode()
        if _has(place, item.raw) and _has(digest_place, digest):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(digest_place, digest)
        _write_whole(place, item.raw)
        for folder in (place.parent, self._folder):
            _sync_folder(folder)

    def _read(self, item_id: str) -> DataItem:
        place = self._place(item_id)
        item = parse_item(place.read_bytes())
        digest = place.with_suffix(_DIGEST_SUFFIX).read_bytes().decode(errors="replace")
        if item.item_id != item_id or hashlib.sha256(item.data).hexdigest() != digest:
            raise BlobDamaged(item_id)
        return item

    def _place(self, item_id: str) -> Path:
        """Return where an item lies: a letter's case may not count for files, so its hash does."""
        digest = hashlib.sha256(item_id.encode()).hexdigest()
        return self._folder / digest[:2] / digest


def _has(place: Path, content: bytes) -> bool:
    try:
        return place.read_bytes() == content
    except FileNotFoundError:
        return False


def _write_whole(place: Path, content: bytes) -> None:
    """Put a file in its place in one step, its content on the disk before."""
    handle, name = tempfile.mkstemp(suffix=_PARTIAL_SUFFIX, dir=place.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(place)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

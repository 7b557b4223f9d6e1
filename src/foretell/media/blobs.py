"""Storage of signed data items on this machine, each under its id and checked on every read.

The scheme of the addresses is `local`: this is one disk. The bytes are those that a permanent
network accepts, so an item can be uploaded there later under the same id.

An item is written to a partial file, synced and renamed, so a file is always complete. The digest
of its data is stored next to it, because the id is a hash of the signature, not of the data.
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
from foretell.runtime.folders import sync_folder

SCHEME: Final = "local"
ITEM_BYTES_MAX: Final = 4 * 1024 * 1024

_ID_CHARACTERS: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)
_DIGEST_SUFFIX: Final = ".sha256"
_PARTIAL_SUFFIX: Final = ".partial"


def blob_uri(item_id: str) -> str:
    """Return the address of an item, with the scheme of its storage."""
    return f"{SCHEME}://{item_id}"


class BlobStore:
    """A folder of items."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def store(self, item: DataItem) -> None:
        """Store an item permanently; storing it again changes nothing."""
        if len(item.raw) > ITEM_BYTES_MAX:
            raise StorageUnavailable(f"an item has at most {ITEM_BYTES_MAX} bytes")
        try:
            await asyncio.to_thread(self._write, item)
        except OSError as error:
            raise StorageUnavailable(error.strerror or type(error).__name__) from error

    async def load(self, item_id: str) -> DataItem:
        """Return an item, checked against its id and the stored digest of its data."""
        if len(item_id) != ID_CHARS or not _ID_CHARACTERS.issuperset(item_id):
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
        path = self._path(item.item_id)
        digest_path = path.with_suffix(_DIGEST_SUFFIX)
        digest = hashlib.sha256(item.data).hexdigest().encode()
        if _has(path, item.raw) and _has(digest_path, digest):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(digest_path, digest)
        _write_atomically(path, item.raw)
        for folder in (path.parent, self._folder):
            sync_folder(folder)

    def _read(self, item_id: str) -> DataItem:
        path = self._path(item_id)
        item = parse_item(path.read_bytes())
        digest = path.with_suffix(_DIGEST_SUFFIX).read_bytes().decode(errors="replace")
        if item.item_id != item_id or hashlib.sha256(item.data).hexdigest() != digest:
            raise BlobDamaged(item_id)
        return item

    def _path(self, item_id: str) -> Path:
        """Return the path of an item: a hash of its id, since file systems may ignore case."""
        digest = hashlib.sha256(item_id.encode()).hexdigest()
        return self._folder / digest[:2] / digest


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False


def _write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step, after its content is on the disk."""
    handle, name = tempfile.mkstemp(suffix=_PARTIAL_SUFFIX, dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise

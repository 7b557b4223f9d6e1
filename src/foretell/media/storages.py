"""Clients of the kinds of permanent storage."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from foretell.domain.creation.storages import Storage
from foretell.media.bundler import Bundler
from foretell.media.ipfs import IpfsNode
from foretell.media.permanent_storage import PermanentStorage

_CLIENTS: Final[Mapping[Storage, Callable[[str, str | None], PermanentStorage]]] = MappingProxyType(
    {Storage.ARWEAVE: Bundler, Storage.IPFS: IpfsNode}
)


def open_storage(storage: Storage, url: str, token: str | None) -> PermanentStorage:
    """Return the client of a permanent storage, which is to be closed."""
    return _CLIENTS[storage](url, token)

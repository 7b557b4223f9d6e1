"""Kinds of storage of metadata and images, and the ids that items have there."""

from enum import StrEnum
from typing import Final

from foretell.domain.creation.content_ids import content_id, is_content_id
from foretell.domain.creation.data_items import ID_CHARS, DataItem

_ITEM_ID_CHARACTERS: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)


class Storage(StrEnum):
    """Where items are stored; the value is the scheme of their addresses."""

    LOCAL = "local"
    ARWEAVE = "ar"
    IPFS = "ipfs"

    @property
    def is_permanent(self) -> bool:
        """Whether a service stores the items too."""
        return self is not Storage.LOCAL

    def id_of(self, item: DataItem) -> str:
        """Return the id of an item: its own, or on IPFS the hash of its content."""
        return content_id(item.data) if self is Storage.IPFS else item.item_id

    def has_form(self, item_id: str) -> bool:
        """Return whether a text has the form of an id of this storage."""
        if self is Storage.IPFS:
            return is_content_id(item_id)
        return len(item_id) == ID_CHARS and _ITEM_ID_CHARACTERS.issuperset(item_id)

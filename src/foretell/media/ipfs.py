"""An IPFS node or pinning service: it stores the contents of items under the hashes that they have.

We compute the id of a content ourselves and compare it with the one of the receipt. Adding a content again
changes nothing, so a post with an unknown outcome is simply repeated.
"""

from typing import Final

import msgspec
from typing_extensions import override

from foretell.domain.creation.content_ids import content_id
from foretell.domain.creation.data_items import DataItem
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.permanent_storage import POST_DEADLINE_S, PermanentStorage

ADD: Final = "/api/v0/add?cid-version=1&raw-leaves=true&pin=true&progress=false"
"""The route of a node's API, with contents kept as they are and never dropped."""


class _AddReceipt(msgspec.Struct):
    hash: str = msgspec.field(name="Hash")


class IpfsNode(PermanentStorage):
    """A client of one node or service."""

    name = "the IPFS node"

    def __init__(
        self, api_url: str, token: str | None = None, *, deadline_s: float = POST_DEADLINE_S
    ) -> None:
        """`api_url` is the address of the API, without a path."""
        super().__init__(api_url.rstrip("/") + ADD, token, deadline_s)

    @override
    async def post(self, item: DataItem) -> None:
        """Add and pin the content of an item; raise StorageUnavailable unless the receipt has its id."""
        wanted = content_id(item.data)
        body = await self.receipt(files={"file": (wanted, item.data, item.content_type)})
        try:
            receipt = msgspec.json.decode(body, type=_AddReceipt)
        except msgspec.MsgspecError as error:
            raise StorageUnavailable("the IPFS node's receipt cannot be read") from error
        if receipt.hash != wanted:
            raise StorageUnavailable(f"the IPFS node's receipt is of {receipt.hash[:100]!r}")

"""A bundler: a service that stores signed data items on a permanent network, under the ids that they have.

Posting an item again changes nothing, so a post with an unknown outcome is simply repeated.
"""

import msgspec
from typing_extensions import override

from foretell.domain.creation.data_items import DataItem
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.permanent_storage import POST_DEADLINE_S, PermanentStorage


class _Receipt(msgspec.Struct):
    id: str


class Bundler(PermanentStorage):
    """A client of one bundler."""

    name = "the bundler"

    def __init__(
        self, upload_url: str, token: str | None = None, *, deadline_s: float = POST_DEADLINE_S
    ) -> None:
        """`upload_url` takes the bytes of an item by POST, and answers with a receipt that has its id."""
        super().__init__(upload_url, token, deadline_s)

    @override
    async def post(self, item: DataItem) -> None:
        """Post an item; raise StorageUnavailable unless the receipt has its id."""
        headers = {"content-type": "application/octet-stream"}
        body = await self.receipt(content=item.raw, headers=headers)
        try:
            receipt = msgspec.json.decode(body, type=_Receipt)
        except msgspec.MsgspecError as error:
            raise StorageUnavailable("the bundler's receipt cannot be read") from error
        if receipt.id != item.item_id:
            raise StorageUnavailable(f"the bundler's receipt is of {receipt.id[:100]!r}")

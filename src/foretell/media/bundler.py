"""A bundler: a service that stores signed data items on a permanent network, under the ids that they have.

Posting an item again changes nothing, so a post with an unknown outcome is simply repeated.
"""

from typing import Final, Self

import httpx
import msgspec

from foretell.domain.creation.data_items import DataItem
from foretell.domain.errors.storage import StorageUnavailable

POST_DEADLINE_S: Final = 30.0
RECEIPT_BYTES_MAX: Final = 64 * 1024
_CAUSE_CHARS_MAX: Final = 200


class _Receipt(msgspec.Struct):
    id: str


class Bundler:
    """A client of one bundler."""

    def __init__(self, upload_url: str, *, deadline_s: float = POST_DEADLINE_S) -> None:
        """`upload_url` takes the bytes of an item by POST, and answers with a receipt that has its id."""
        self._url = upload_url
        self._http = httpx.AsyncClient(timeout=deadline_s, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def post(self, item: DataItem) -> None:
        """Post an item; raise StorageUnavailable unless the receipt has its id."""
        headers = {"content-type": "application/octet-stream"}
        try:
            async with self._http.stream(
                "POST", self._url, content=item.raw, headers=headers
            ) as answer:
                body = await _read(answer)
        except httpx.HTTPError as error:
            raise StorageUnavailable(f"the bundler: {type(error).__name__}") from error
        if not answer.is_success:
            words = body.decode(errors="replace")[:_CAUSE_CHARS_MAX]
            raise StorageUnavailable(f"the bundler answers {answer.status_code}: {words}")
        try:
            receipt = msgspec.json.decode(body, type=_Receipt)
        except msgspec.MsgspecError as error:
            raise StorageUnavailable("the bundler's receipt cannot be read") from error
        if receipt.id != item.item_id:
            raise StorageUnavailable(f"the bundler's receipt is of {receipt.id[:100]!r}")


async def _read(answer: httpx.Response) -> bytes:
    """Return an answer's body; more than a receipt can have is not read."""
    body = b""
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > RECEIPT_BYTES_MAX:
            raise StorageUnavailable("the bundler's receipt is too long")
    return body

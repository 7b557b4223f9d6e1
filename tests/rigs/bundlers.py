"""A bundler that checks every byte, and fails on purpose."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
from tests.rigs.applications import serving

from foretell.domain.creation.data_items import DataItem, parse_item
from foretell.domain.errors.http import MalformedBody
from foretell.edge.telemetry import Receive, Scope, Send


@dataclass
class RecordingBundler:
    """Stores the items that it gets; `statuses` and `receipts` are what it answers with instead, in turn."""

    item_by_id: dict[str, DataItem] = field(default_factory=dict)
    posts: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    receipts: list[bytes] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one item: its signature and all its bytes are verified."""
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        assert (scope["method"], scope["path"]) == ("POST", "/tx")
        assert (b"content-type", b"application/octet-stream") in scope["headers"]
        status = self.statuses.pop(0) if self.statuses else 200
        try:
            item = parse_item(body)
        except MalformedBody as refusal:
            status, receipt = 400, refusal.message.encode()
        else:
            self.posts.append(item.item_id)
            status = 400 if item.item_id in self.refused else status
            receipt = msgspec.json.encode({"id": item.item_id, "owner": "somebody"})
            if status == 200:
                self.item_by_id[item.item_id] = item
        receipt = self.receipts.pop(0) if self.receipts else receipt
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": receipt})


@contextlib.asynccontextmanager
async def a_bundler() -> AsyncIterator[RecordingBundler]:
    bundler = RecordingBundler()
    async with serving(bundler) as place:
        bundler.url = f"http://{place}/tx"
        yield bundler

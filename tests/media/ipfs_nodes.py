"""An IPFS node that checks every byte, computes ids in its own way, and fails on purpose."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from urllib.parse import parse_qs

import msgspec
from tests.rigs.applications import serving

from foretell.edge.telemetry import Receive, Scope, Send

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
ASKED = {"cid-version": ["1"], "raw-leaves": ["true"], "pin": ["true"], "progress": ["false"]}


def computed_id(content: bytes) -> str:
    """Return the id of a content of one block, by arithmetic: 36 bytes are 58 digits of 5 bits."""
    number = int.from_bytes(b"\x01\x55\x12\x20" + hashlib.sha256(content).digest()) << 2
    digits = [ALPHABET[number >> 5 * place & 31] for place in range(58)]
    return "b" + "".join(reversed(digits))


@dataclass
class RecordingNode:
    """Keeps what it is given; `statuses` and `receipts` are what it answers with instead, in turn."""

    content_by_id: dict[str, bytes] = field(default_factory=dict)
    kind_by_id: dict[str, str] = field(default_factory=dict)
    posts: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    receipts: list[bytes] = field(default_factory=list)
    token: str | None = None
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the one file of a form."""
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        headers = dict(scope["headers"])
        assert (scope["method"], scope["path"]) == ("POST", "/api/v0/add")
        assert parse_qs(scope["query_string"].decode()) == ASKED
        wanted = None if self.token is None else f"Bearer {self.token}".encode()
        status = self.statuses.pop(0) if self.statuses else 200
        if headers.get(b"authorization") != wanted:
            status = 401
        part = the_file(headers[b"content-type"], body)
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found = computed_id(content)
        self.posts.append(found)
        if status == 200:
            self.content_by_id[found] = content
            self.kind_by_id[found] = part.get_content_type()
        receipt = {"Name": part.get_filename(), "Hash": found, "Size": str(len(content))}
        answer = self.receipts.pop(0) if self.receipts else msgspec.json.encode(receipt) + b"\n"
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": answer})


def the_file(content_type: bytes, body: bytes) -> Message:
    """Return the only part of a form, which is the file."""
    form = message_from_bytes(b"Content-Type: " + content_type + b"\r\n\r\n" + body)
    assert form.get_content_type() == "multipart/form-data"
    parts = form.get_payload()
    assert isinstance(parts, list)
    (part,) = parts
    assert isinstance(part, Message)
    assert part.get_param("name", header="content-disposition") == "file"
    return part


@contextlib.asynccontextmanager
async def an_ipfs_node() -> AsyncIterator[RecordingNode]:
    node = RecordingNode()
    async with serving(node) as place:
        node.url = f"http://{place}"
        yield node

"""Posts to a bundler, over HTTP."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from tests.rigs.bundlers import RecordingBundler, a_bundler
from tests.rigs.values import a_key

from foretell.domain.creation.data_items import DataItem, ItemTag, sign_item
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.bundler import Bundler
from foretell.media.permanent_storage import RECEIPT_BYTES_MAX

pytestmark = pytest.mark.anyio

ITEM = sign_item(bytes(range(256)) * 40, [ItemTag("Content-Type", "image/webp")], a_key("storage"))


@pytest.fixture
async def bundler() -> AsyncIterator[RecordingBundler]:
    async with a_bundler() as bundler:
        yield bundler


async def post(url: str, item: DataItem = ITEM, deadline_s: float = 10.0) -> None:
    async with Bundler(url, deadline_s=deadline_s) as client:
        await client.post(item)


async def test_a_posted_item_has_every_byte_and_its_id(bundler: RecordingBundler) -> None:
    await post(bundler.url)
    await post(bundler.url)
    assert bundler.item_by_id == {ITEM.item_id: ITEM}
    assert bundler.posts == [ITEM.item_id] * 2


@pytest.mark.parametrize("status", [400, 402, 429, 500, 503])
async def test_a_refused_item_is_not_posted(bundler: RecordingBundler, status: int) -> None:
    bundler.statuses.append(status)
    with pytest.raises(StorageUnavailable, match=f"the bundler answers {status}"):
        await post(bundler.url)


@pytest.mark.parametrize(
    ("receipt", "cause"),
    [
        (b'{"id": "another"}', "receipt is of 'another'"),
        (b"{}", "receipt cannot be read"),
        (b"OK", "receipt cannot be read"),
        (b"x" * (RECEIPT_BYTES_MAX + 1), "receipt is too long"),
    ],
)
async def test_a_receipt_must_have_the_id_of_the_item(
    bundler: RecordingBundler, receipt: bytes, cause: str
) -> None:
    bundler.receipts.append(receipt)
    with pytest.raises(StorageUnavailable, match=cause):
        await post(bundler.url)


async def test_guard_a_bundler_that_sends_a_byte_now_and_then_is_unavailable_at_the_deadline() -> (
    None
):
    """A finding: the deadline was of each byte, and all items waited for this one."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(StorageUnavailable, match="no receipt within 1 s"):
        await post(f"http://127.0.0.1:{port}/tx", deadline_s=1.0)
    server.close()


async def test_a_bundler_that_does_not_answer_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/tx"
        with pytest.raises(StorageUnavailable, match=r"ReadTimeout|no receipt within 1 s"):
            await post(url, deadline_s=1.0)
    with pytest.raises(StorageUnavailable, match="ConnectError"):
        await post(url)

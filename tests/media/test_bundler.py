"""Posts to a bundler, over HTTP."""

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


async def test_a_bundler_that_does_not_answer_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/tx"
        with pytest.raises(StorageUnavailable, match="ReadTimeout"):
            await post(url, deadline_s=1.0)
    with pytest.raises(StorageUnavailable, match="ConnectError"):
        await post(url)

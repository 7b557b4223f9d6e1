"""Storage on IPFS, against a node that parses and hashes what it gets by itself."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.media.ipfs_nodes import RecordingNode, an_ipfs_node, computed_id
from tests.rigs.values import a_key

from foretell.domain.creation.content_ids import BLOCK_BYTES_MAX
from foretell.domain.creation.data_items import DataItem, ItemTag, sign_item
from foretell.domain.creation.storages import Storage
from foretell.domain.errors.storage import (
    BlobDamaged,
    BlobNotFound,
    ItemTooLarge,
    StorageUnavailable,
)
from foretell.media.blobs import BlobStore
from foretell.media.images import ImagePolicy
from foretell.media.ipfs import IpfsNode
from foretell.media.permanent_storage import RECEIPT_BYTES_MAX

pytestmark = pytest.mark.anyio


def an_item(data: bytes, kind: str = "image/webp") -> DataItem:
    return sign_item(data, [ItemTag("Content-Type", kind)], a_key("storage"))


ITEM = an_item(bytes(range(256)) * 40 + b"\r\n--boundary\r\n")
ID = computed_id(ITEM.data)


@pytest.fixture
async def node() -> AsyncIterator[RecordingNode]:
    async with an_ipfs_node() as node:
        yield node


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs", Storage.IPFS)


async def post(
    url: str, item: DataItem = ITEM, token: str | None = None, deadline_s: float = 10.0
) -> None:
    async with IpfsNode(url, token, deadline_s=deadline_s) as client:
        await client.post(item)


async def test_a_posted_content_has_every_byte_and_the_id_that_we_computed(
    node: RecordingNode,
) -> None:
    await post(node.url)
    await post(node.url + "/")
    assert node.content_by_id == {ID: ITEM.data}
    assert node.kind_by_id == {ID: "image/webp"}
    assert node.posts == [ID, ID]


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES_MAX])
async def test_a_content_of_any_size_up_to_a_block_is_posted(
    node: RecordingNode, size: int
) -> None:
    item = an_item(bytes(size))
    await post(node.url, item)
    assert node.content_by_id == {computed_id(item.data): item.data}


@pytest.mark.parametrize("status", [302, 400, 401, 403, 429, 500, 503])
async def test_a_refused_content_is_not_posted(node: RecordingNode, status: int) -> None:
    node.statuses.append(status)
    with pytest.raises(StorageUnavailable, match=f"the IPFS node answers {status}"):
        await post(node.url)


@pytest.mark.parametrize(
    ("receipt", "cause"),
    [
        (b'{"Hash": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"}', "is of"),
        (b'{"Hash": "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"}', "is of 'QmYw"),
        (b"{}", "cannot be read"),
        (b"OK", "cannot be read"),
        (b"", "cannot be read"),
        (b"x" * (RECEIPT_BYTES_MAX + 1), "is too long"),
    ],
)
async def test_a_receipt_must_have_the_id_that_we_computed(
    node: RecordingNode, receipt: bytes, cause: str
) -> None:
    node.receipts.append(receipt)
    with pytest.raises(StorageUnavailable, match=cause):
        await post(node.url)


async def test_a_token_is_sent_and_is_in_no_message(node: RecordingNode) -> None:
    node.token = "a-secret-token"
    await post(node.url, token="a-secret-token")
    assert node.content_by_id
    with pytest.raises(StorageUnavailable, match="401") as refused:
        await post(node.url, token="another-token")
    assert "token" not in refused.value.message


async def test_a_node_that_does_not_answer_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            StorageUnavailable, match=r"the IPFS node(: ReadTimeout| gave no receipt within)"
        ):
            await post(url, deadline_s=1.0)
    with pytest.raises(StorageUnavailable, match="ConnectError"):
        await post(url)


async def test_an_item_is_stored_under_the_hash_of_its_content(blobs: BlobStore) -> None:
    assert await blobs.store(ITEM) == ID
    assert await blobs.load(ID) == ITEM
    assert blobs.uri(ID) == f"ipfs://{ID}"
    assert await blobs.unsent() == [ID]
    with pytest.raises(BlobNotFound):
        await blobs.load(computed_id(b"another"))


async def test_another_content_under_an_id_is_detected(blobs: BlobStore) -> None:
    await blobs.store(ITEM)
    other = an_item(b"other")
    await blobs.store(other)
    place, source = (blobs._path(each) for each in (ID, computed_id(other.data)))
    for suffix in ("", ".sha256"):
        place.with_suffix(suffix).write_bytes(source.with_suffix(suffix).read_bytes())
    with pytest.raises(BlobDamaged):
        await blobs.load(ID)


async def test_a_content_of_several_blocks_is_refused(blobs: BlobStore) -> None:
    with pytest.raises(ItemTooLarge, match=f"at most {BLOCK_BYTES_MAX} bytes"):
        await blobs.store(an_item(bytes(BLOCK_BYTES_MAX + 1)))
    assert ImagePolicy().bytes_max < BLOCK_BYTES_MAX, "every image fits"


async def ids_never_sent(blobs: BlobStore) -> list[str]:
    found = [await blobs.id_in_file(name) async for name in blobs.never_sent()]
    return [item_id for item_id in found if item_id is not None]


async def test_items_of_another_storage_can_be_read_and_are_not_posted(
    tmp_path: Path, blobs: BlobStore
) -> None:
    bundled = BlobStore(tmp_path / "blobs", Storage.ARWEAVE)
    earlier = an_item(b"earlier")
    await bundled.store(earlier)
    large = an_item(bytes(BLOCK_BYTES_MAX + 1))
    await bundled.store(large)
    await blobs.store(ITEM)
    assert await blobs.load(earlier.item_id) == earlier
    assert await bundled.load(ID) == ITEM
    assert await blobs.unsent() == await ids_never_sent(blobs) == [ID]
    assert await bundled.unsent() == [earlier.item_id, large.item_id]
    assert sorted(await ids_never_sent(bundled)) == sorted([earlier.item_id, large.item_id])

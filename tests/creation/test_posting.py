"""Posting of metadata and images to the permanent network."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.creation.rig import CreationRig
from tests.media.ipfs_nodes import RecordingNode, an_ipfs_node, computed_id
from tests.rigs.bundlers import RecordingBundler, a_bundler
from tests.rigs.values import a_key

from foretell.creation.context import CreationContext
from foretell.creation.metadata import store_images
from foretell.creation.posting import (
    FAILURES_MAX,
    PushCounts,
    post_unsent,
    push_items,
    run_posting,
)
from foretell.domain.creation.data_items import DataItem, ItemTag, sign_item
from foretell.domain.creation.storages import Storage
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.blobs import BlobStore
from foretell.media.bundler import Bundler
from foretell.media.ipfs import IpfsNode

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0


def an_item(text: str) -> DataItem:
    return sign_item(text.encode(), [ItemTag("Content-Type", "text/plain")], a_key("storage"))


ITEMS = [an_item(f"item {number}") for number in range(6)]


@pytest.fixture
async def network() -> AsyncIterator[RecordingBundler]:
    async with a_bundler() as network:
        yield network


@pytest.fixture
async def bundler(network: RecordingBundler) -> AsyncIterator[Bundler]:
    async with Bundler(network.url) as bundler:
        yield bundler


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs", Storage.ARWEAVE)


async def store(blobs: BlobStore, *items: DataItem) -> None:
    for item in items:
        await blobs.store(item)


async def test_every_stored_item_is_posted_once(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    await store(blobs, *ITEMS)
    assert await post_unsent(blobs, bundler)
    assert network.item_by_id == {item.item_id: item for item in ITEMS}
    await store(blobs, *ITEMS)
    assert not await post_unsent(blobs, bundler)
    assert len(network.posts) == len(ITEMS)
    assert blobs.uri(ITEMS[0].item_id) == f"ar://{ITEMS[0].item_id}"


async def test_the_oldest_item_is_posted_first(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    for item in ITEMS:
        await blobs.store(item)
        await asyncio.sleep(0.01)
    await post_unsent(blobs, bundler)
    assert network.posts == [item.item_id for item in ITEMS]


async def test_an_item_that_is_refused_keeps_no_other_back(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    await store(blobs, *ITEMS)
    network.statuses = [400]
    with pytest.raises(StorageUnavailable, match="400"):
        await post_unsent(blobs, bundler)
    assert len(network.item_by_id) == len(ITEMS) - 1
    assert await post_unsent(blobs, bundler)
    assert network.item_by_id.keys() == {item.item_id for item in ITEMS}


async def test_items_that_are_refused_forever_keep_no_other_back(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    """As many as make the bundler count as unavailable, and all of them older than the others."""
    for item in ITEMS:
        await blobs.store(item)
        await asyncio.sleep(0.01)
    network.refused = {item.item_id for item in ITEMS[:FAILURES_MAX]}
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="400"):
            await post_unsent(blobs, bundler)
    assert network.item_by_id.keys() == {item.item_id for item in ITEMS[FAILURES_MAX:]}


async def test_guard_items_that_are_lost_here_keep_no_other_back(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    """A finding: one missing file ended each pass before the others."""
    for item in ITEMS:
        await blobs.store(item)
        await asyncio.sleep(0.01)
    for item in ITEMS[:FAILURES_MAX]:
        blobs._path(item.item_id).unlink()
    with pytest.raises(StorageUnavailable):
        await post_unsent(blobs, bundler)
    assert network.item_by_id.keys() == {item.item_id for item in ITEMS[FAILURES_MAX:]}


async def test_a_bundler_that_fails_is_not_asked_for_every_item(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    await store(blobs, *ITEMS)
    network.statuses = [503] * 100
    with pytest.raises(StorageUnavailable, match="503"):
        await post_unsent(blobs, bundler)
    assert len(network.posts) == FAILURES_MAX


async def test_a_new_process_posts_what_the_last_one_left(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler, tmp_path: Path
) -> None:
    """One receipt was lost in a crash, and nothing else was posted."""
    await store(blobs, *ITEMS)
    await bundler.post(ITEMS[0])
    again = BlobStore(tmp_path / "blobs", Storage.ARWEAVE)
    running = asyncio.create_task(run_posting(again, bundler))
    async with asyncio.timeout(WITHIN_S):
        while await again.unsent():  # noqa: ASYNC110 - the store has no event to wait for
            await asyncio.sleep(0.01)
    running.cancel()
    assert network.item_by_id == {item.item_id: item for item in ITEMS}


async def test_an_item_whose_mark_a_crash_prevented_gets_one_when_it_is_stored_again(
    tmp_path: Path,
) -> None:
    await store(BlobStore(tmp_path / "blobs"), ITEMS[0])
    blobs = BlobStore(tmp_path / "blobs", Storage.ARWEAVE)
    assert await blobs.unsent() == []
    await store(blobs, ITEMS[0])
    assert await blobs.unsent() == [ITEMS[0].item_id]


async def test_items_from_before_there_was_a_bundler_are_found(
    tmp_path: Path, bundler: Bundler, network: RecordingBundler
) -> None:
    await store(BlobStore(tmp_path / "blobs"), *ITEMS[:3])
    blobs = BlobStore(tmp_path / "blobs", Storage.ARWEAVE)
    await store(blobs, ITEMS[3])
    assert await post_unsent(blobs, bundler)
    assert await push_items(blobs, bundler, pytest.fail) == PushCounts(posted=3, failed=0)
    assert [name async for name in blobs.never_sent()] == []
    assert network.item_by_id.keys() == {item.item_id for item in ITEMS[:4]}


async def test_a_push_passes_over_damaged_items_and_names_them(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many damaged items as failed posts would end the push; they are read in several batches."""
    monkeypatch.setattr("foretell.media.blobs.UNSENT_PER_READ_MAX", 2)
    await store(blobs, *ITEMS)
    damaged = [blobs._path(item.item_id) for item in ITEMS[:FAILURES_MAX]]
    damaged[0].write_bytes(b"no item")
    damaged[1].with_suffix(".sha256").write_bytes(b"another digest")
    damaged[2].with_suffix(".sha256").unlink()
    lines: list[str] = []
    counts = await push_items(blobs, bundler, lines.append)
    assert counts == PushCounts(posted=len(ITEMS) - FAILURES_MAX, failed=FAILURES_MAX)
    assert sorted(line.split(": ")[0] for line in lines) == sorted(path.name for path in damaged)
    assert network.item_by_id.keys() == {item.item_id for item in ITEMS[FAILURES_MAX:]}


async def test_a_push_passes_over_one_refusal_and_ends_when_the_service_is_unavailable(
    blobs: BlobStore, bundler: Bundler, network: RecordingBundler
) -> None:
    await store(blobs, *ITEMS)
    network.statuses = [400, 200, *[503] * 100]
    lines: list[str] = []
    assert await push_items(blobs, bundler, lines.append) == PushCounts(1, 1 + FAILURES_MAX)
    assert ["400" in line for line in lines] == [True, False, False, False]
    assert len(network.posts) == 2 + FAILURES_MAX


@pytest.fixture
async def node() -> AsyncIterator[RecordingNode]:
    async with an_ipfs_node() as node:
        yield node


@pytest.fixture
async def ipfs(node: RecordingNode) -> AsyncIterator[IpfsNode]:
    async with IpfsNode(node.url) as ipfs:
        yield ipfs


async def test_a_new_process_adds_to_ipfs_what_the_last_one_left(
    node: RecordingNode, ipfs: IpfsNode, tmp_path: Path
) -> None:
    """One receipt was lost in a crash, the node refused the next post, and nothing else was posted."""
    await store(BlobStore(tmp_path / "blobs", Storage.IPFS), *ITEMS)
    await ipfs.post(ITEMS[0])
    node.statuses = [503]
    again = BlobStore(tmp_path / "blobs", Storage.IPFS)
    running = asyncio.create_task(run_posting(again, ipfs))
    async with asyncio.timeout(WITHIN_S):
        while await again.unsent():  # noqa: ASYNC110 - the store has no event to wait for
            await asyncio.sleep(0.01)
    running.cancel()
    assert node.content_by_id == {computed_id(item.data): item.data for item in ITEMS}
    assert len(node.posts) == len(ITEMS) + 2


@pytest.mark.spec(71)
async def test_what_market_creation_stores_reaches_ipfs(
    rig: CreationRig, node: RecordingNode, ipfs: IpfsNode, tmp_path: Path
) -> None:
    rig.change(blobs=BlobStore(tmp_path / "blobs", Storage.IPFS), permanent_storage=ipfs)
    context: CreationContext = rig.context
    ids = await store_images(context, {"event": b"the bytes of a picture"})
    await post_unsent(context.blobs, ipfs)
    assert ids == {"event": computed_id(b"the bytes of a picture")}
    assert node.content_by_id == {ids["event"]: b"the bytes of a picture"}
    assert context.blobs.uri(ids["event"]) == f"ipfs://{ids['event']}"
    shown = await rig.http.get(f"/blobs/{ids['event']}")
    assert (shown.content, shown.headers["content-type"]) == (
        b"the bytes of a picture",
        "image/webp",
    )
    assert shown.headers["etag"] == f'"{ids["event"]}"'


@pytest.mark.deviation(8)
@pytest.mark.spec(71)
async def test_what_market_creation_stores_reaches_the_permanent_network(
    rig: CreationRig, network: RecordingBundler, bundler: Bundler, blobs: BlobStore
) -> None:
    rig.change(blobs=blobs, permanent_storage=bundler)
    context: CreationContext = rig.context
    ids = await store_images(context, {"event": b"the bytes of a picture"})
    await post_unsent(context.blobs, bundler)
    [item] = network.item_by_id.values()
    assert (item.item_id, item.data) == (ids["event"], b"the bytes of a picture")
    assert context.blobs.uri(item.item_id).startswith("ar://")

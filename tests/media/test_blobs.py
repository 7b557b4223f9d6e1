import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.rigs.values import a_key
from tests.runtime.lack_of_threads import lack_of_threads

from foretell.domain.creation.data_items import DataItem, ItemTag, sign_item
from foretell.domain.errors.storage import (
    BlobDamaged,
    BlobNotFound,
    StorageFull,
    StorageUnavailable,
)
from foretell.media.blobs import ITEM_BYTES_MAX, BlobStore

pytestmark = pytest.mark.anyio


def an_item(data: bytes = b'{"name":"Rain"}') -> DataItem:
    return sign_item(data, [ItemTag("Content-Type", "application/json")], a_key("storage"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(folder: Path) -> BlobStore:
    return BlobStore(folder)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.spec(50)
async def test_an_item_is_found_under_its_id(blobs: BlobStore) -> None:
    item = an_item()
    await blobs.store(item)

    assert await blobs.load(item.item_id) == item
    assert blobs.uri(item.item_id) == f"local://{item.item_id}"


async def test_storing_again_changes_nothing(blobs: BlobStore, folder: Path) -> None:
    item = an_item()
    await blobs.store(item)
    before = {path: path.stat().st_mtime_ns for path in files_of(folder)}

    await blobs.store(item)

    assert {path: path.stat().st_mtime_ns for path in files_of(folder)} == before
    assert len(before) == 2


async def test_many_writers_of_one_item_agree(blobs: BlobStore, folder: Path) -> None:
    item = an_item()

    await asyncio.gather(*(blobs.store(item) for _ in range(20)))

    assert await blobs.load(item.item_id) == item
    assert len(files_of(folder)) == 2


async def test_another_process_finds_a_stored_item(blobs: BlobStore, folder: Path) -> None:
    item = an_item()
    await blobs.store(item)

    assert await BlobStore(folder).load(item.item_id) == item


@pytest.mark.parametrize(
    "item_id", ["", "a" * 42, "a" * 44, "../" + "a" * 40, "a" * 42 + "/", "a" * 42 + "é"]
)
async def test_a_malformed_id_is_not_found(blobs: BlobStore, item_id: str) -> None:
    with pytest.raises(BlobNotFound):
        await blobs.load(item_id)


async def test_an_unknown_id_is_not_found(blobs: BlobStore) -> None:
    with pytest.raises(BlobNotFound):
        await blobs.load(an_item().item_id)


@pytest.mark.case("F-10")
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("change", [b"", b"junk", None])
async def test_a_changed_file_is_detected_and_storing_repairs_it(
    blobs: BlobStore, folder: Path, which: int, change: bytes | None
) -> None:
    item = an_item()
    await blobs.store(item)
    file = files_of(folder)[which]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"\x00" if change is None else change)

    with pytest.raises(BlobDamaged):
        await blobs.load(item.item_id)

    await blobs.store(item)
    assert await blobs.load(item.item_id) == item


@pytest.mark.case("F-10")
async def test_an_item_under_another_id_is_detected(blobs: BlobStore, folder: Path) -> None:
    item, other = an_item(), an_item(b"other")
    await blobs.store(item)
    place = next(path for path in files_of(folder) if not path.suffix)
    place.write_bytes(other.raw)
    place.with_suffix(".sha256").write_text(hashlib.sha256(other.data).hexdigest())

    with pytest.raises(BlobDamaged):
        await blobs.load(item.item_id)


async def test_a_half_written_item_is_not_found_and_can_be_stored_again(
    blobs: BlobStore, folder: Path
) -> None:
    item = an_item()
    await blobs.store(item)
    place = next(path for path in files_of(folder) if not path.suffix)
    place.unlink()

    with pytest.raises(BlobNotFound):
        await blobs.load(item.item_id)
    await blobs.store(item)
    assert await blobs.load(item.item_id) == item


async def test_a_failed_write_leaves_no_item_behind(blobs: BlobStore, folder: Path) -> None:
    item = an_item()
    await blobs.store(item)
    place, digest = (path for path in files_of(folder))
    place.unlink()
    digest.unlink()
    digest.mkdir()

    with pytest.raises(StorageUnavailable):
        await blobs.store(item)

    assert files_of(folder) == []


@pytest.fixture
def occupied_folder(folder: Path) -> Path:
    folder.write_text("a file where the folder should be")
    return folder


async def test_an_unusable_folder_is_reported(occupied_folder: Path) -> None:
    with pytest.raises(StorageUnavailable):
        await BlobStore(occupied_folder).store(an_item())
    with pytest.raises(StorageUnavailable):
        await BlobStore(occupied_folder).load(an_item().item_id)


async def test_the_size_of_an_item_is_limited(blobs: BlobStore) -> None:
    with pytest.raises(StorageUnavailable, match="an item has at most"):
        await blobs.store(an_item(bytes(ITEM_BYTES_MAX)))


@pytest.mark.case("A-11")
def test_without_a_thread_an_item_is_neither_stored_nor_loaded(blobs: BlobStore) -> None:
    """A loop of its own has no thread yet, and leaves none to other tests."""
    item = an_item()

    async def store_and_load() -> None:
        with lack_of_threads():
            with pytest.raises(StorageUnavailable, match="starts no more threads"):
                await blobs.store(item)
            with pytest.raises(StorageUnavailable, match="starts no more threads"):
                await blobs.load(item.item_id)
        with pytest.raises(BlobNotFound):
            await blobs.load(item.item_id)
        await blobs.store(item)
        assert await blobs.load(item.item_id) == item

    asyncio.run(store_and_load())


async def test_room_is_refused_when_less_than_the_part_and_the_bytes_is_free(
    monkeypatch: pytest.MonkeyPatch, blobs: BlobStore
) -> None:
    monkeypatch.setattr("foretell.media.blobs.FREE_BYTES_MIN", 2**63)
    monkeypatch.setattr("foretell.media.blobs.FREE_PART_MIN", 1.0)
    with pytest.raises(StorageFull):
        await blobs.check_room()


@pytest.mark.parametrize(("bytes_min", "part_min"), [(2**63, 0.0), (0, 1.0)])
async def test_room_is_there_when_the_part_or_the_bytes_are_free(
    monkeypatch: pytest.MonkeyPatch, blobs: BlobStore, bytes_min: int, part_min: float
) -> None:
    monkeypatch.setattr("foretell.media.blobs.FREE_BYTES_MIN", bytes_min)
    monkeypatch.setattr("foretell.media.blobs.FREE_PART_MIN", part_min)
    await blobs.check_room()

import pytest

from foretell.domain.creation.content_ids import content_id
from foretell.domain.creation.data_items import ID_CHARS, DataItem
from foretell.domain.creation.storages import Storage

ITEM = DataItem(raw=b"raw", signature=b"signature", owner=b"owner", tags=(), data=b"content")


@pytest.mark.parametrize("storage", list(Storage))
def test_an_id_has_the_form_of_ids_of_its_storage_alone(storage: Storage) -> None:
    item_id = storage.id_of(ITEM)

    expected = content_id(ITEM.data) if storage is Storage.IPFS else ITEM.item_id
    assert item_id == expected
    fitting = {each for each in Storage if each.has_form(item_id)}
    assert fitting == ({Storage.IPFS} if storage is Storage.IPFS else set(Storage) - {Storage.IPFS})


@pytest.mark.parametrize("text", ["", "a" * (ID_CHARS - 1), "a" * (ID_CHARS - 1) + "/", "../" * 14])
def test_other_texts_are_no_ids(text: str) -> None:
    assert not any(storage.has_form(text) for storage in Storage)


def test_only_a_folder_of_this_machine_is_not_permanent() -> None:
    assert [storage for storage in Storage if not storage.is_permanent] == [Storage.LOCAL]

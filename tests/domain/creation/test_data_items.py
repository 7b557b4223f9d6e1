import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_key

from foretell.domain.creation.data_items import (
    TAG_BYTES_MAX,
    TAGS_MAX,
    ItemTag,
    parse_item,
    sign_item,
)
from foretell.domain.errors.http import MalformedBody
from foretell.domain.values.eip712 import CURVE_ORDER

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data_item_vectors.json").read_text()
)
"""Items created and verified by the JavaScript library arbundles 0.11.2."""

TAGS = (ItemTag("Content-Type", "image/webp"), ItemTag("App-Name", "Foretell"))
HEADER_BYTES = 2 + 65 + 65 + 2 + 16


@pytest.mark.parametrize("vector", VECTORS, ids=["empty", "json", "tags"])
def test_an_item_is_byte_for_byte_that_of_another_library(vector: dict[str, Any]) -> None:
    tags = [ItemTag(tag["name"], tag["value"]) for tag in vector["tags"]]

    item = sign_item(bytes.fromhex(vector["data"]), tags, bytes.fromhex(vector["key"]))

    assert item.raw.hex() == vector["raw"]
    assert item.item_id == vector["id"]
    assert parse_item(item.raw) == item


@given(
    st.binary(max_size=300),
    st.lists(st.builds(ItemTag, st.text(max_size=20), st.text(max_size=200)), max_size=6),
)
def test_an_item_comes_back_from_its_bytes(data: bytes, tags: list[ItemTag]) -> None:
    item = sign_item(data, tags, a_key("storage"))

    assert parse_item(item.raw) == item
    assert sign_item(data, tags, a_key("storage")).item_id == item.item_id
    assert len(item.item_id) == 43


def test_other_data_tags_or_keys_are_other_items() -> None:
    ids = {
        sign_item(b"data", TAGS, a_key("storage")).item_id,
        sign_item(b"date", TAGS, a_key("storage")).item_id,
        sign_item(b"data", TAGS[:1], a_key("storage")).item_id,
        sign_item(b"data", TAGS, a_key("other")).item_id,
    }

    assert len(ids) == 4


def test_the_type_of_the_data_is_its_tag() -> None:
    assert sign_item(b"", TAGS, a_key("storage")).content_type == "image/webp"
    assert sign_item(b"", TAGS[1:], a_key("storage")).content_type == "application/octet-stream"


def test_any_changed_bit_is_noticed() -> None:
    raw = sign_item(b"some data", TAGS, a_key("storage")).raw
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        with pytest.raises(MalformedBody):
            parse_item(changed)


@given(st.data())
def test_any_cut_is_noticed(data: st.DataObject) -> None:
    raw = sign_item(b"some data", TAGS, a_key("storage")).raw
    length = data.draw(st.integers(0, len(raw) - 1))

    with pytest.raises(MalformedBody):
        parse_item(raw[:length])


def an_item_with_tag_bytes(tag_bytes: bytes, count: int) -> bytes:
    raw = sign_item(b"", (), a_key("storage")).raw[: HEADER_BYTES - 16]
    return raw + count.to_bytes(8, "little") + len(tag_bytes).to_bytes(8, "little") + tag_bytes


@pytest.mark.parametrize(
    ("tag_bytes", "count", "why"),
    [
        (b"\x02\x02a\x02b", 1, "another encoding of its tags"),
        (b"\x02\x02a\x02b\x00\x00", 1, "another encoding of its tags"),
        (b"\x82\x00\x02a\x02b\x00", 1, "another encoding of its tags"),
        (b"\x02\x02a\x02b\x00", 2, "do not fit their count"),
        (b"\x02\x02a\x7fb\x00", 1, "another encoding of its tags"),
        (b"\x02\x02\xff\x02b\x00", 1, "end too early"),
        (b"\x02\x02a", 1, "end too early"),
        (b"\xff", 1, "end too early"),
        (b"\xfe\xff\xff\xff\x0f" + b"\x00" * 400, 1, "another encoding of its tags"),
        (b"\x00" * (TAG_BYTES_MAX + 1), 0, "more than 4096 bytes of tags"),
        (b"", 1, "do not fit their count"),
        (b"\x02\x02a\x02b\x00", 1, "did not sign"),
    ],
)
def test_tags_that_are_spelt_in_another_way_are_refused(
    tag_bytes: bytes, count: int, why: str
) -> None:
    with pytest.raises(MalformedBody, match=why):
        parse_item(an_item_with_tag_bytes(tag_bytes, count))


def test_an_item_with_tags_beyond_its_end_is_refused() -> None:
    raw = sign_item(b"", (), a_key("storage")).raw

    with pytest.raises(MalformedBody, match="do not fit"):
        parse_item(raw[:-8] + (5).to_bytes(8, "little"))


@pytest.mark.parametrize(
    ("place", "replacement", "why"),
    [
        (0, b"\x01\x00", "of an Ethereum key"),
        (132, b"\x01\x00", "a target or an anchor"),
        (132, b"\x00\x01", "a target or an anchor"),
        (66, b"\x00", "an invalid signature"),
        (66, b"\xff", "an invalid signature"),
        (2, CURVE_ORDER.to_bytes(32, "big"), "an invalid signature"),
    ],
)
def test_bytes_that_are_not_an_item_are_refused(place: int, replacement: bytes, why: str) -> None:
    raw = sign_item(b"data", (), a_key("storage")).raw
    changed = raw[:place] + replacement + raw[place + len(replacement) :]

    with pytest.raises(MalformedBody, match=why):
        parse_item(changed)


@given(st.binary(max_size=400))
def test_no_bytes_do_more_than_be_refused(raw: bytes) -> None:
    with pytest.raises(MalformedBody):
        parse_item(b"\x03\x00" + raw)


def test_tags_are_bounded() -> None:
    sign_item(b"", [ItemTag("a", "b")] * TAGS_MAX, a_key("storage"))

    with pytest.raises(AssertionError):
        sign_item(b"", [ItemTag("a", "b")] * (TAGS_MAX + 1), a_key("storage"))

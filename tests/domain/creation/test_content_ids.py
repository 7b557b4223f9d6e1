import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.creation.content_ids import BLOCK_BYTES_MAX, content_id, is_content_id


@pytest.mark.parametrize(
    ("content", "published"),
    [
        (b"", "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"),
        (b"hello world", "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"),
    ],
)
def test_an_id_is_the_one_that_nodes_give(content: bytes, published: str) -> None:
    assert content_id(content) == published


@given(st.binary(max_size=1000))
def test_an_id_says_how_its_content_was_hashed(content: bytes) -> None:
    text = content_id(content)
    assert is_content_id(text)
    raw = base64.b32decode(text[1:].upper() + "======")
    assert raw == bytes([1, 0x55, 0x12, 32]) + hashlib.sha256(content).digest()


@pytest.mark.parametrize(
    "text", ["", "b" * 59, "bafkrei", "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79"]
)
def test_another_text_is_no_such_id(text: str) -> None:
    assert not is_content_id(text)


def test_a_content_of_several_blocks_has_no_such_id() -> None:
    assert content_id(bytes(BLOCK_BYTES_MAX))
    with pytest.raises(AssertionError):
        content_id(bytes(BLOCK_BYTES_MAX + 1))

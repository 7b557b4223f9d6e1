from collections.abc import Callable

import pytest

from foretell.domain.contracts.log_words import (
    ADDRESSES_KEPT_MAX,
    TOKENS_KEPT_MAX,
    LogWords,
    address_in,
    bytes32_in,
    integer_in,
    signed_in,
    token_in,
    topic_address,
    topic_bytes32,
    topic_integer,
    topic_signed,
)


def words_of(*numbers: int) -> LogWords:
    return LogWords(b"".join(number.to_bytes(32, "big") for number in numbers))


def test_topics_are_read_from_the_hex_of_a_node_in_any_case() -> None:
    topic = "0x" + "00" * 12 + "0A" * 20
    assert topic_address(topic) == "0x" + "0a" * 20
    assert topic_bytes32(topic) == topic.lower()
    assert topic_integer(topic) == int(topic, 16)
    assert topic_signed("0x" + "ff" * 32) == -1


@pytest.mark.parametrize(
    "topic",
    [
        "0x" + "0a" * 31,
        "0x" + "00" * 33,
        "0x" + "0g" * 32,
        "0x" + "00" * 31 + "0",
        "",
        "0x" + " 0" * 32,
    ],
)
@pytest.mark.parametrize("read", [topic_address, topic_bytes32, topic_integer, topic_signed])
def test_a_topic_that_is_not_one_word_of_hex_is_refused(
    topic: str, read: Callable[[str], object]
) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(topic)


def test_words_are_numbered_from_zero() -> None:
    words = words_of(5, 6)
    assert words.integer(1) == 6
    assert words.word(0) == (5).to_bytes(32, "big")
    words.check_size(64)
    with pytest.raises(ValueError, match="length"):
        words.check_size(63)


def test_a_list_starts_at_the_expected_word() -> None:
    words = words_of(64, 9, 2, 7, 8)
    assert words.integers(0, 2) == (7, 8)
    with pytest.raises(ValueError, match="at another word"):
        words.integers(0, 1)
    with pytest.raises(ValueError, match="longer"):
        words_of(32, 2, 7).integers(0, 1)


def test_a_text_is_padded_with_zeros() -> None:
    padded = (32).to_bytes(32, "big") + (3).to_bytes(32, "big")
    assert LogWords(padded + b"abc".ljust(32, b"\0")).text(0, 1) == b"abc"
    with pytest.raises(ValueError, match="bits"):
        LogWords(padded + b"abcd".ljust(32, b"\0")).text(0, 1)


def test_a_word_holds_an_address_a_hash_or_a_number() -> None:
    assert address_in(bytes(12) + b"\xab" * 20) == "0x" + "ab" * 20
    assert bytes32_in(b"\xab" * 32) == "0x" + "ab" * 32
    assert integer_in(b"\xff" * 32) == 2**256 - 1
    assert token_in(b"\xff" * 32) == str(2**256 - 1)
    assert signed_in(b"\xff" * 32) == -1
    with pytest.raises(ValueError, match="address"):
        address_in(b"\x01" + bytes(31))


@pytest.mark.parametrize(
    ("read", "kept_max", "written"),
    [
        (topic_address, ADDRESSES_KEPT_MAX, lambda number: f"0x{number:064x}"),
        (token_in, TOKENS_KEPT_MAX, lambda number: number.to_bytes(32)),
    ],
)
def test_what_was_read_is_kept_up_to_a_bound(
    read: Callable[[str | bytes], str], kept_max: int, written: Callable[[int], str | bytes]
) -> None:
    kept = read.__self__  # type: ignore[attr-defined]  # the mapping that the function reads
    first = read(written(0))
    assert read(written(0)) is first
    for number in range(2 * kept_max):
        read(written(number))
        assert len(kept) <= kept_max
    assert read(written(0)) == first

import pytest

from foretell.domain.contracts.log_words import (
    LogWords,
    address_in,
    bytes32_in,
    integer_in,
    parse_words,
    signed_in,
)


def words_of(*numbers: int) -> LogWords:
    return LogWords((), b"".join(number.to_bytes(32, "big") for number in numbers))


def test_topics_and_data_are_read_from_the_hex_of_a_node() -> None:
    words = parse_words(["0x" + "0A" * 32], "0xff")
    assert words == LogWords((b"\x0a" * 32,), b"\xff")


@pytest.mark.parametrize(
    ("topics", "data"),
    [(["0x" + "0a" * 31], "0x"), (["0x" + "0g" * 32], "0x"), ([], "0xf"), ([], "0xzz")],
)
def test_bytes_that_are_not_whole_words_of_hex_are_refused(topics: list[str], data: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_words(topics, data)


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
    assert LogWords((), padded + b"abc".ljust(32, b"\0")).text(0, 1) == b"abc"
    with pytest.raises(ValueError, match="bits"):
        LogWords((), padded + b"abcd".ljust(32, b"\0")).text(0, 1)


def test_a_word_holds_an_address_a_hash_or_a_number() -> None:
    assert address_in(bytes(12) + b"\xab" * 20) == "0x" + "ab" * 20
    assert bytes32_in(b"\xab" * 32) == "0x" + "ab" * 32
    assert integer_in(b"\xff" * 32) == 2**256 - 1
    assert signed_in(b"\xff" * 32) == -1
    with pytest.raises(ValueError, match="address"):
        address_in(b"\x01" + bytes(31))

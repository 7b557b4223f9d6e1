import pytest

from foretell.domain.contracts.wallet_state import address_in


@pytest.mark.parametrize(
    "word", [b"", bytes(31), bytes(32), b"\x01" + bytes(31), bytes(11) + b"\x01" * 21]
)
def test_a_word_of_storage_that_is_no_address_names_none(word: bytes) -> None:
    assert address_in(word) is None


def test_an_address_is_the_end_of_a_word() -> None:
    assert address_in(bytes(12) + b"\xab" * 20) == "0x" + "ab" * 20

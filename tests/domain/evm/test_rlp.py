import pytest
import rlp
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.chain import MalformedTransaction
from foretell.domain.evm.rlp import decode_list, encode_bytes, encode_integer, encode_list


@given(st.integers(0, 2**256))
def test_an_integer_is_written_as_an_independent_encoder_writes_it(value: int) -> None:
    assert encode_integer(value) == rlp.encode(value)


@given(st.binary(max_size=70000) | st.binary(max_size=2))
def test_bytes_are_written_as_an_independent_encoder_writes_them(raw: bytes) -> None:
    assert encode_bytes(raw) == rlp.encode(raw)


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_a_list_is_written_and_read_as_an_independent_encoder_does(parts: list[bytes]) -> None:
    encoded = encode_list([encode_bytes(part) for part in parts])
    assert encoded == rlp.encode(parts)
    assert decode_list(encoded) == parts


def test_a_list_within_a_list_stays_encoded() -> None:
    inner = encode_list([encode_bytes(b"ab")])
    assert decode_list(encode_list([inner, encode_bytes(b"c")])) == [inner, b"c"]


@pytest.mark.parametrize(
    "encoded",
    [b"", b"\x01", b"\x83abc", b"\xc2a", b"\xc1\x82", b"\xc0\x00", b"\xf8", b"\xc1\xb8"],
)
def test_bytes_that_are_not_one_list_are_refused(encoded: bytes) -> None:
    with pytest.raises(MalformedTransaction):
        decode_list(encoded)

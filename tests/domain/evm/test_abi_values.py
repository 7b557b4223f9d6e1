import functools

import eth_abi.abi
import pytest
from eth_abi.exceptions import DecodingError, EncodingError
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.evm.abi_values import decode_values, encode_values, types_of, word

WORDS = {
    "uint256": st.integers(0, 2**256 - 1),
    "uint8": st.integers(0, 255),
    "int256": st.integers(-(2**255), 2**255 - 1),
    "int24": st.integers(-(2**23), 2**23 - 1),
    "bool": st.booleans(),
    "address": st.binary(min_size=20, max_size=20).map(lambda raw: f"0x{raw.hex()}"),
    "bytes32": st.binary(min_size=32, max_size=32),
    "bytes4": st.binary(min_size=4, max_size=4),
    "bytes": st.binary(max_size=70),
    "string": st.text(max_size=40),
}
"""The values of each type."""
TUPLES = (
    "()",
    "(uint256,address,bool,bytes4,uint8)",
    "(bytes,int256,string,int24)",
    "((uint8,bytes32),(bytes,bool)[],address[])",
    "(string[],(int256,(bytes,string))[],bytes[][])",
)


@functools.cache
def values_of(kind: str) -> st.SearchStrategy[object]:
    if kind.endswith("[]"):
        return st.lists(values_of(kind[:-2]), max_size=4).map(tuple)
    if kind.startswith("("):
        return st.tuples(*map(values_of, types_of(kind)))
    return WORDS[kind]


@pytest.mark.parametrize("kind", TUPLES)
@given(drawn=st.data())
def test_the_encoding_is_that_of_another_library(kind: str, drawn: st.DataObject) -> None:
    types, values = types_of(kind), drawn.draw(values_of(kind))
    assert isinstance(values, tuple)
    encoded = encode_values(types, values)
    assert encoded == eth_abi.abi.encode(types, values)
    assert decode_values(types, encoded) == values


@pytest.mark.parametrize("kind", TUPLES)
@given(drawn=st.data())
def test_bytes_are_decoded_where_another_library_would_encode_them_so(
    kind: str, drawn: st.DataObject
) -> None:
    """A valid encoding with one word replaced, removed or added."""
    types, values = types_of(kind), drawn.draw(values_of(kind))
    assert isinstance(values, tuple)
    encoded = eth_abi.abi.encode(types, values)
    at = 32 * drawn.draw(st.integers(0, len(encoded) // 32))
    numbers = st.integers(0, 8).map(lambda number: word(32 * number))
    put = drawn.draw(st.one_of(st.just(b""), numbers, st.binary(min_size=32, max_size=32)))
    changed = encoded[:at] + put + encoded[at + 32 * drawn.draw(st.integers(0, 1)) :]
    assert decoded_by_us(types, changed) == decoded_by_another(types, changed)


def decoded_by_us(types: tuple[str, ...], content: bytes) -> object:
    try:
        return decode_values(types, content)
    except ValueError:
        return None


def decoded_by_another(types: tuple[str, ...], content: bytes) -> object:
    """Return the values that the other library reads, if it would write the same bytes for them."""
    try:
        values = eth_abi.abi.decode(types, content)
        again = eth_abi.abi.encode(types, values)
    except (DecodingError, EncodingError, OverflowError, UnicodeError):
        return None
    return values if again == content else None


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("uint256", bytes(31)),
        ("uint256", bytes(33)),
        ("uint8", word(256)),
        ("int24", word(2**23)),
        ("bool", word(2)),
        ("address", word(2**160)),
        ("bytes4", bytes(4) + b"\1" + bytes(27)),
        ("bytes", word(32) + word(33) + bytes(32)),
        ("bytes", word(32) + word(1) + b"ab" + bytes(30)),
        ("bytes", word(32) + word(2**255)),
        ("bytes", word(64) + bytes(32) + word(0)),
        ("string", word(32) + word(1) + b"\xff" + bytes(31)),
        ("uint256[]", word(32) + word(2**255)),
        ("uint256[]", word(32) + word(2) + bytes(32)),
    ],
)
def test_other_bytes_are_refused(kind: str, content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each type has words of its own
        decode_values((kind,), content)


def test_values_that_would_share_bytes_are_refused() -> None:
    """A thousand offsets to the same kilobyte would be a megabyte."""
    shared = word(1000 * 32)
    content = word(32) + word(1000) + 1000 * shared + word(1024) + bytes(1024)
    with pytest.raises(ValueError, match="offset"):
        decode_values(("bytes[]",), content)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("uint8", 256),
        ("uint8", -1),
        ("int24", 2**23),
        ("int24", -(2**23) - 1),
        ("bool", 1),
        ("address", "0x" + "ab" * 19),
        ("bytes4", b"abc"),
    ],
)
def test_a_value_outside_its_type_is_an_error_of_the_program(kind: str, value: object) -> None:
    with pytest.raises(AssertionError):
        encode_values((kind,), (value,))


def test_values_that_are_too_many_are_an_error_of_the_program() -> None:
    with pytest.raises(ValueError, match="argument 2 is longer"):
        encode_values(("bool",), (True, True))


def test_an_array_of_nothing_is_no_type() -> None:
    with pytest.raises(AssertionError):
        encode_values(("()[]",), ((),))

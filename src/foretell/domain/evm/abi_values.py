"""Values as contracts encode them: in 32-byte words, those of a variable length behind the others.

There is one encoding of a value, and decoding accepts no other: no gap, no shared bytes, no bits outside a type.
So the work of decoding is bounded by the bytes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

WORD_BYTES: Final = 32
ADDRESS_BYTES: Final = 20
INTEGER_BITS: Final = 256
TYPES_KEPT_MAX: Final = 1024
_SIZED: Final = re.compile(r"([a-z]+)([0-9]+)")


class ValueCodec(NamedTuple):
    """The encoding of one type.

    `decode` takes bytes and the place of the value in them, and returns the value and the place behind it; it
    raises ValueError. `static_bytes` is the length of each value, None if it varies.
    """

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes, int], tuple[Any, int]]
    static_bytes: int | None = WORD_BYTES

    @property
    def head_bytes(self) -> int:
        """Bytes among the values of a tuple: the value's own, or those of its offset."""
        return WORD_BYTES if self.static_bytes is None else self.static_bytes


def encode_values(types: tuple[str, ...], values: Sequence[object]) -> bytes:
    """Return the encoding of values; one outside its type is a programming error."""
    return _codec_of_tuple(types).encode(values)


def decode_values(types: tuple[str, ...], content: bytes) -> tuple[Any, ...]:
    """Return the values of an encoding; raises ValueError for all other bytes."""
    values, end = _codec_of_tuple(types).decode(content, 0)
    if end != len(content):
        raise ValueError(f"{len(content)} bytes, of which {end} are of the values")
    return tuple(values)


def word(number: int) -> bytes:
    """Return a number as a word, as calldata and packed records have it."""
    return number.to_bytes(WORD_BYTES)


def length_prefixed(content: bytes) -> bytes:
    """Return bytes as calldata has them: their length, and the bytes up to the next whole word."""
    return word(len(content)) + content + bytes(-len(content) % WORD_BYTES)


def types_of(tuple_type: str) -> tuple[str, ...]:
    """Return the types within the parentheses, tuples kept whole."""
    types, depth, start = [], 0, 1
    for at, character in enumerate(tuple_type):
        depth += (character == "(") - (character == ")")
        if (character == "," and depth == 1) or (depth == 0 and at > start):
            types.append(tuple_type[start:at])
            start = at + 1
    return tuple(types)


def codec_of(kind: str) -> ValueCodec:
    """Return the encoding of a type, such as `(address,uint256)[]`."""
    if kind.endswith("[]"):
        return _array_of(codec_of(kind[:-2]))
    if kind.startswith("("):
        return _codec_of_tuple(types_of(kind))
    if sized := _SIZED.fullmatch(kind):
        name, size = sized.groups()
        return _SIZED_CODECS[name](int(size))
    return _CODEC_BY_NAME[kind]


@lru_cache(maxsize=TYPES_KEPT_MAX)
def _codec_of_tuple(types: tuple[str, ...]) -> ValueCodec:
    return _tuple_of([codec_of(kind) for kind in types])


def _tuple_of(parts: Sequence[ValueCodec]) -> ValueCodec:
    head_bytes = sum(part.head_bytes for part in parts)
    is_static = all(part.static_bytes is not None for part in parts)

    def encode(values: Sequence[object]) -> bytes:
        head: list[bytes] = []
        tail: list[bytes] = []
        end = head_bytes
        for part, value in zip(parts, values, strict=True):
            encoded = part.encode(value)
            if part.static_bytes is None:
                head.append(word(end))
                tail.append(encoded)
                end += len(encoded)
            else:
                head.append(encoded)
        return b"".join(head + tail)

    def decode(content: bytes, start: int) -> tuple[tuple[Any, ...], int]:
        values, at, end = [], start, start + head_bytes
        for part in parts:
            if part.static_bytes is None:
                offset, at = _decode_word(content, at)
                if offset != end - start:
                    raise ValueError(f"offset {offset}, not {end - start}")
                value, end = part.decode(content, end)
            else:
                value, at = part.decode(content, at)
            values.append(value)
        return tuple(values), end

    return ValueCodec(encode, decode, head_bytes if is_static else None)


def _array_of(part: ValueCodec) -> ValueCodec:
    assert part.head_bytes, "values of no bytes could be any number"

    def encode(values: Sequence[object]) -> bytes:
        return word(len(values)) + _tuple_of([part] * len(values)).encode(values)

    def decode(content: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        count, start = _decode_word(content, at)
        if count * part.head_bytes > len(content) - start:
            raise ValueError(f"{count} values in {len(content) - start} bytes")
        values, end = _tuple_of([part] * count).decode(content, start)
        return tuple(values), end

    return ValueCodec(encode, decode, None)


def _decode_word(content: bytes, at: int) -> tuple[int, int]:
    found = content[at : at + WORD_BYTES]
    if len(found) != WORD_BYTES:
        raise ValueError(f"{len(content)} bytes end within the word at {at}")
    return int.from_bytes(found), at + WORD_BYTES


def _integer(bits: int, *, is_signed: bool) -> ValueCodec:
    low = -(1 << bits - 1) if is_signed else 0
    high = low + (1 << bits)

    def encode(value: int) -> bytes:
        assert low <= value < high, f"{value} is outside of {bits} bits"
        return value.to_bytes(WORD_BYTES, signed=is_signed)

    def decode(content: bytes, at: int) -> tuple[int, int]:
        value, end = _decode_word(content, at)
        if is_signed and value >> INTEGER_BITS - 1:
            value -= 1 << INTEGER_BITS
        if not low <= value < high:
            raise ValueError(f"{value} is outside of {bits} bits")
        return value, end

    return ValueCodec(encode, decode)


def _fixed_bytes(length: int) -> ValueCodec:
    padding = bytes(WORD_BYTES - length)

    def encode(value: bytes) -> bytes:
        assert len(value) == length, f"{len(value)} bytes, not {length}"
        return value + padding

    def decode(content: bytes, at: int) -> tuple[bytes, int]:
        _, end = _decode_word(content, at)
        if content[at + length : end] != padding:
            raise ValueError(f"more than {length} bytes")
        return content[at : at + length], end

    return ValueCodec(encode, decode)


def _encode_bool(value: bool) -> bytes:  # noqa: FBT001 - the value to encode
    assert isinstance(value, bool)
    return word(value)


def _decode_bool(content: bytes, at: int) -> tuple[bool, int]:
    value, end = _decode_word(content, at)
    if value > 1:
        raise ValueError(f"{value} is neither true nor false")
    return bool(value), end


def _encode_address(value: str) -> bytes:
    address = bytes.fromhex(value.removeprefix("0x"))
    assert len(address) == ADDRESS_BYTES, f"{value} is no address"
    return bytes(WORD_BYTES - ADDRESS_BYTES) + address


def _decode_address(content: bytes, at: int) -> tuple[str, int]:
    value, end = _decode_word(content, at)
    if value >> 8 * ADDRESS_BYTES:
        raise ValueError(f"{value:#x} is no address")
    return f"0x{value:040x}", end


def _decode_bytes(content: bytes, at: int) -> tuple[bytes, int]:
    length, start = _decode_word(content, at)
    found = content[start : start + length]
    end = start + length + -length % WORD_BYTES
    if content[start:end] != found + bytes(-length % WORD_BYTES) or len(found) != length:
        raise ValueError(f"not {length} bytes in whole words")
    return found, end


def _decode_text(content: bytes, at: int) -> tuple[str, int]:
    found, end = _decode_bytes(content, at)
    return found.decode(), end


_CODEC_BY_NAME: Final[Mapping[str, ValueCodec]] = {
    "bool": ValueCodec(_encode_bool, _decode_bool),
    "address": ValueCodec(_encode_address, _decode_address),
    "bytes": ValueCodec(length_prefixed, _decode_bytes, None),
    "string": ValueCodec(lambda value: length_prefixed(value.encode()), _decode_text, None),
}

_SIZED_CODECS: Final[Mapping[str, Callable[[int], ValueCodec]]] = {
    "uint": partial(_integer, is_signed=False),
    "int": partial(_integer, is_signed=True),
    "bytes": _fixed_bytes,
}

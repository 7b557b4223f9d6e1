"""Recursive length prefixes (RLP), the encoding of transactions.

An item is bytes, or a list of items. Integers are bytes without leading zeros, so zero is empty.
"""

from collections.abc import Sequence
from typing import Final

from foretell.domain.errors.chain import MalformedTransaction

_SHORT_MAX: Final = 55
_BYTES_OFFSET: Final = 0x80
_LIST_OFFSET: Final = 0xC0


def encode_integer(value: int) -> bytes:
    """Return an unsigned integer, encoded as its shortest bytes."""
    return encode_bytes(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def encode_bytes(raw: bytes) -> bytes:
    """Return bytes with their length prefix; a single small byte has none."""
    if len(raw) == 1 and raw[0] < _BYTES_OFFSET:
        return raw
    return _prefix(len(raw), _BYTES_OFFSET) + raw


def encode_list(encoded: Sequence[bytes]) -> bytes:
    """Return a list of encoded items."""
    body = b"".join(encoded)
    return _prefix(len(body), _LIST_OFFSET) + body


def decode_list(encoded: bytes) -> list[bytes]:
    """Return the items of a list, inner lists still encoded, or refuse malformed bytes."""
    start, end, is_list = _span(encoded, 0)
    if not is_list or end != len(encoded):
        raise MalformedTransaction("one list")
    parts = []
    while start < end:
        body, after, is_list = _span(encoded[:end], start)
        parts.append(encoded[start:after] if is_list else encoded[body:after])
        start = after
    return parts


def _prefix(length: int, offset: int) -> bytes:
    if length <= _SHORT_MAX:
        return bytes([offset + length])
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([offset + _SHORT_MAX + len(size)]) + size


def _span(encoded: bytes, at: int) -> tuple[int, int, bool]:
    """Return the start and the end of an item's body, and whether it is a list."""
    if at >= len(encoded):
        raise MalformedTransaction("no shorter than it says")
    first = encoded[at]
    if first < _BYTES_OFFSET:
        return at, at + 1, False
    is_list = first >= _LIST_OFFSET
    length = first - (_LIST_OFFSET if is_list else _BYTES_OFFSET)
    body = at + 1
    if length > _SHORT_MAX:
        size = length - _SHORT_MAX
        length = int.from_bytes(encoded[body : body + size], "big")
        body += size
    if body + length > len(encoded):
        raise MalformedTransaction("no shorter than it says")
    return body, body + length, is_list

"""Pages of lists and their cursors: an encoded offset, and an end marker that clients expect."""

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec

from foretell.domain.errors.order import MalformedBatch
from foretell.edge.codec import encode_json

END: Final = "LTE="
OFFSET_MAX: Final = 2**31 - 1
PAGE_HEAD: Final = b'{"data":['
"""The encoded page up to its first entry."""

_OFFSET: Final = re.compile(r"\d{1,10}\Z", re.ASCII)

Entry = TypeVar("Entry")


class Page(msgspec.Struct, Generic[Entry], frozen=True):
    """A part of a list, and the cursor of the next part."""

    data: Sequence[Entry]
    next_cursor: str
    limit: int
    count: int


def parse_cursor(text: str | None) -> int:
    """Return the offset of a cursor, 0 without one, or refuse."""
    if not text:
        return 0
    try:
        decoded = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise MalformedBatch(
            "next_cursor must be the one that the previous page returned"
        ) from error
    if decoded == "-1":
        return OFFSET_MAX
    if _OFFSET.match(decoded) is None or int(decoded) > OFFSET_MAX:
        raise MalformedBatch("next_cursor must be the one that the previous page returned")
    return int(decoded)


def page(entries: Sequence[Entry], offset: int, limit: int) -> Page[Entry]:
    """Return a page; one entry more than the limit was read if the list continues."""
    shown = entries[:limit]
    next_cursor = _next_cursor(offset, limit, is_last=len(entries) <= limit)
    return Page(shown, next_cursor, limit, len(shown))


def page_tail(offset: int, limit: int, count: int, *, is_last: bool) -> bytes:
    """Return the encoded page from behind its last entry; `PAGE_HEAD` and the entries precede it."""
    empty: Page[object] = Page((), _next_cursor(offset, limit, is_last=is_last), limit, count)
    return encode_json(empty).removeprefix(PAGE_HEAD)


def _next_cursor(offset: int, limit: int, *, is_last: bool) -> str:
    return END if is_last else base64.b64encode(str(offset + limit).encode()).decode()

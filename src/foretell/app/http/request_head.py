"""A strict reader of request heads: what it accepts, every HTTP server reads in the same way.

It knows only the plain form that clients send: one line for each header, a name, a colon, one space and a
value. Every other form, even a valid one, is left to the framework's parser.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from typing_extensions import override

SHAPES_KEPT_MAX: Final = 256
NAMES_KEPT_MAX: Final = 32
"""Names of a shape that is kept: usual heads have far fewer, and each one may be of 64 bytes."""
HEAD_BYTES_MAX: Final = 16 * 1024
HEADERS_MAX: Final = 128
LENGTH_DIGITS_MAX: Final = 5

END: Final = b"\r\n\r\n"
_NAME: Final = re.compile(rb"[A-Za-z0-9_-]{1,64}\Z")
_PRINTED: Final = bytes(byte for byte in range(256) if byte >= 0x20 and byte != 0x7F)  # noqa: PLR2004 - ASCII
_REFUSED: Final = frozenset(
    {
        b"transfer-encoding",
        b"upgrade",
        b"expect",
        b"trailer",
        b"keep-alive",
        b"http2-settings",
        b"origin",
        b"idempotency-key",
    }
)
"""Headers that change what a body is, what becomes of the connection, or what an answer must be."""
_KEEP_ALIVE: Final = b"keep-alive"

Names = tuple[bytes, ...]


class _Shape(NamedTuple):
    """The names of a head's headers in lower case, by their positions, and two positions of note."""

    position_by_name: Mapping[str, int]
    length_at: int | None
    connection_at: int | None


class RequestHeaders(Mapping[str, str]):
    """The headers of a request by their names in lower case; values are decoded when they are read."""

    __slots__ = ("_index", "_values")

    def __init__(self, index: Mapping[str, int], values: tuple[bytes, ...]) -> None:
        self._index = index
        self._values = values

    @override
    def __getitem__(self, name: str) -> str:
        return self._values[self._index[name]].decode("latin-1")

    @override
    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default; that of the base class raises and catches an exception."""
        at = self._index.get(name)
        return default if at is None else self._values[at].decode("latin-1")

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._index

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    @override
    def __len__(self) -> int:
        return len(self._index)


class Head(NamedTuple):
    """The headers of a request, and the length of its body in bytes."""

    headers: RequestHeaders
    body_bytes: int


class HeadReader:
    """Reads heads; keeps the shapes of those it has seen, because a client sends the same ones."""

    def __init__(self, shapes_kept_max: int = SHAPES_KEPT_MAX) -> None:
        self._shapes_kept_max = shapes_kept_max
        self._shape_by_names: dict[Names, _Shape | None] = {}

    def read(self, lines: bytes) -> Head | None:
        """Return what header lines say, or None when the framework's parser should read them.

        `lines` are all header lines of a head, without the CRLF of the last one.
        """
        if len(lines) > HEAD_BYTES_MAX or _has_odd_blanks(lines):
            return None
        pairs = [line.split(b": ", 1) for line in lines.split(b"\r\n")]
        if lines.translate(None, _PRINTED) != b"\r\n" * (len(pairs) - 1):
            return None  # control characters, or a lone CR or LF
        try:
            names, values = zip(*pairs, strict=True)
        except ValueError:
            return None
        shape = self._shape_by_names.get(names) or self._learn(names)
        return None if shape is None else self._head(shape, values)

    def _head(self, shape: _Shape, values: tuple[bytes, ...]) -> Head | None:
        connection_at, length_at = shape.connection_at, shape.length_at
        if connection_at is not None and values[connection_at].lower() != _KEEP_ALIVE:
            return None
        length = b"0" if length_at is None else values[length_at]
        if not length.isdigit() or len(length) > LENGTH_DIGITS_MAX:
            return None
        return Head(RequestHeaders(shape.position_by_name, values), int(length))

    def _learn(self, names: Names) -> _Shape | None:
        """Return the shape of these names, None if the framework's parser must read them; keep that of a usual head."""
        lower = [name.lower() for name in names]
        is_plain = (
            len(names) <= HEADERS_MAX
            and b"host" in lower
            and all(map(_NAME.match, names))
            and len(set(lower)) == len(lower)
            and _REFUSED.isdisjoint(lower)
        )
        if not is_plain:
            return None
        positions = {name.decode(): at for at, name in enumerate(lower)}
        shape = _Shape(
            MappingProxyType(positions),
            positions.get("content-length"),
            positions.get("connection"),
        )
        if len(names) <= NAMES_KEPT_MAX:
            if len(self._shape_by_names) >= self._shapes_kept_max:
                self._shape_by_names.clear()
            self._shape_by_names[names] = shape
        return shape


def _has_odd_blanks(lines: bytes) -> bool:
    """Return whether a value has blanks around it, which parsers strip."""
    return b":  " in lines or b" \r\n" in lines or lines[-1:] == b" "

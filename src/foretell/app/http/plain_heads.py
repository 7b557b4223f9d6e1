"""Heads without what asks for another protocol than HTTP and WebSockets.

A server may ignore that, and this one does. The parser cannot: it takes every such request for the last on its
connection, without a body, and what follows for something else. If that were read as the next request, a proxy
and this server would disagree on where requests begin, and a client could have its answers sent to another one.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import httptools

_UPGRADES: Final = frozenset({b"upgrade", b"http2-settings"})
"""Headers, and their names in `Connection`."""


def plain_head(
    parser: httptools.HttpRequestParser, target: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> bytes:
    """Return the head that a parser has read, without what asks for an upgrade; names are in lower case."""
    method, version = parser.get_method(), parser.get_http_version().encode()
    lines = b"".join(b"%s: %s\r\n" % pair for pair in _plain(headers))
    return b"%s %s HTTP/%s\r\n%s\r\n" % (method, target, version, lines)


def _plain(headers: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers:
        if name == b"connection":
            tokens = [token.strip() for token in value.split(b",")]
            kept = b", ".join(token for token in tokens if token.lower() not in _UPGRADES)
            if kept:
                yield name, kept
        elif name not in _UPGRADES:
            yield name, value

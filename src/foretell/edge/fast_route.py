"""Fast routes: routes that are answered straight from the connection, without the framework.

A fast route gets the path as clients sign it, without the prefix under which the gateway serves it.
It gets only requests that it answers exactly as the framework would: never a body in several pieces
or a query that its route does not take.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

BODY_BYTES_MAX: Final = 64 * 1024
"""The largest body on the fast path; larger ones and those of unknown length take the framework."""


class FastRequest(NamedTuple):
    """A complete request; header names are in lower case."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes


class FastResponse(NamedTuple):
    """A status, a JSON body, and the seconds after which a client should retry."""

    status: int
    body: bytes
    retry_after_s: int | None = None


class FastRoute(NamedTuple):
    """A query filter and a handler, which answers at once or later.

    `takes` returns whether the fast path can answer a query.
    """

    takes: Callable[[bytes], bool]
    answer: Callable[[FastRequest], FastResponse | Awaitable[FastResponse]]


Route = tuple[str, str]
"""A method and a path."""

"""What a lane is: a route that is answered without a framework, straight from the connection.

A lane sees the path as clients sign it, whatever prefix the gateway serves it under. What it cannot
answer like the framework (a body in pieces, an odd query) is never given to it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

BODY_BYTES_MAX: Final = 64 * 1024
"""Of a request that takes a lane; larger ones, and those of unknown length, take the framework."""


class FastRequest(NamedTuple):
    """A request that is there whole; header names are in lower case."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes


class FastResponse(NamedTuple):
    """A JSON body, and after how many seconds it makes sense to ask again."""

    status: int
    body: bytes
    retry_after_s: int | None = None


class FastRoute(NamedTuple):
    """How a route is answered: at once, or once something has happened.

    `takes` says of a query whether the lane can answer it.
    """

    takes: Callable[[bytes], bool]
    answer: Callable[[FastRequest], FastResponse | Awaitable[FastResponse]]


Route = tuple[str, str]
"""A method and a path."""

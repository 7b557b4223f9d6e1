"""Fast routes: routes that are answered straight from the connection, without the framework.

A fast route gets the path as clients sign it, without the prefix under which the gateway serves it.
It gets only requests that it answers exactly as the framework would: never a body in several pieces
or a query that its route does not take.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from foretell.edge.throttle import Turn

BODY_BYTES_MAX: Final = 64 * 1024
"""The largest body on the fast path; larger ones and those of unknown length take the framework."""


class FastRequest(NamedTuple):
    """A complete request; header names are in lower case."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes
    turn: Turn | None = None
    """Where the request counts; None where no limits apply."""


class FastResponse(NamedTuple):
    """A status, a JSON body, and the seconds after which a client should retry."""

    status: int
    body: bytes
    retry_after_s: int | None = None


SendReply = Callable[[FastResponse], None]
"""Sends the answer to a request; it is called once."""


class FastRoute(NamedTuple):
    """A query filter and a handler, which replies at once or later.

    `takes` returns whether the fast path can answer a query. The coroutine that `begin` may return
    is run as a task of the connection.
    """

    takes: Callable[[bytes], bool]
    begin: Callable[[FastRequest, SendReply], Coroutine[Any, Any, None] | None]


Route = tuple[str, str]
"""A method and a path."""

"""Descriptions of operations, each declared once beside its route.

Handlers read their query and their body themselves, so that refusals have each API's own words. A route
passes what its handler reads, answers and refuses to `describe`, in the `opt` of its decorator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from litestar.handlers import BaseRouteHandler

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import (
    IdempotencyKeyReused,
    MalformedIdempotencyKey,
)
from foretell.domain.errors.order import RequestTaken
from foretell.edge.documents.security import Security
from foretell.edge.parameters import Parameter, boolean

JSON: Final = "application/json"
TEXT: Final = "text/plain"
STRICT: Final = boolean("strict", "whether unknown parameters are refused", default=False)
"""Taken by every route that takes parameters."""

KEYED: Final = (MalformedIdempotencyKey, IdempotencyKeyReused, RequestTaken)
"""The refusals of a request with an idempotency key."""

TAG_HEADERS: Final = MappingProxyType(
    {
        "etag": "A tag of the content: with it in If-None-Match the answer is 304 without a body.",
        "cache-control": "How long a cache may keep the answer, or no-cache: it asks each time.",
    }
)

_KEY: Final = "description"


class Success(NamedTuple):
    """A successful answer: its type, and its meaning. A type of None is one that never comes."""

    kind: Any
    about: str
    media_type: str = JSON
    headers: Mapping[str, str] = {}
    """The meaning of each header that matters to clients."""
    status: int = 200
    is_tagged: bool = False
    """Whether a client that has the answer gets 304 without a body."""


def tagged(kind: Any, about: str) -> Success:
    """Return an answer in JSON that names its content."""
    return Success(kind, about, headers=TAG_HEADERS, is_tagged=True)


class Body(NamedTuple):
    """A request body: its type, or its schema where no type says it."""

    kind: Any = None
    schema: Mapping[str, Any] | None = None
    media_type: str = JSON
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class Described:
    """An operation: all that its document says beyond its path and its docstring."""

    answer: Success
    parameters: Sequence[Parameter[Any]] = ()
    in_path: Sequence[Parameter[Any]] = ()
    """The meaning of names in its path; a name without one is a text."""
    tag: str = ""
    body: Body | None = None
    security: Security | None = None
    refusals: frozenset[type[ForetellError]] = frozenset()
    is_shown: bool = True
    is_keyed: bool = False
    """Whether the operation takes an idempotency key."""


HIDDEN: Final = Described(Success(None, ""), is_shown=False)
"""That of a route of which the document says nothing."""


def describe(
    answer: Success,
    *parameters: Parameter[Any],
    tag: str = "",
    body: Body | type | None = None,
    security: Security | None = None,
    refusals: Sequence[type[ForetellError]] = (),
    is_keyed: bool = False,
) -> dict[str, Any]:
    """Return the `opt` of a route with this description.

    A route that takes parameters takes `strict` too. A route that has no other parameter, and yet checks
    them itself, names `STRICT`.
    """
    in_path = tuple(each for each in parameters if each.is_in_path)
    named = tuple(each for each in parameters if not each.is_in_path)
    named = (*named, STRICT) if named and STRICT not in named else named
    sent = body if body is None or isinstance(body, Body) else Body(body)
    refused = frozenset((*refusals, *(KEYED if is_keyed else ())))
    return {
        _KEY: Described(answer, named, in_path, tag, sent, security, refused, is_keyed=is_keyed)
    }


def description_of(handler: BaseRouteHandler) -> Described:
    """Return the description of a route."""
    found = handler.opt.get(_KEY, HIDDEN)
    assert isinstance(found, Described)
    return found


def takes_parameters(handler: BaseRouteHandler) -> bool:
    """Return whether a route declares query parameters."""
    return bool(description_of(handler).parameters)

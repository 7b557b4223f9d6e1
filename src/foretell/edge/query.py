"""The query parameters of one GET request, read by their declarations.

A query records which names were read. It ignores all others, which clients of other versions send,
unless the client sends `strict=true`: then it refuses them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl

from litestar.handlers import HTTPRouteHandler

from foretell.domain.errors.http import MalformedQuery, UnknownParameter
from foretell.edge.codec import AnyRequest
from foretell.edge.documents.description import STRICT, takes_parameters
from foretell.edge.parameters import TEXT_CHARS_MAX, Parameter

PARAMETERS_MAX: Final = 1000
LIST_MARK: Final = "[]"
"""A parameter's name with this at its end is the same parameter."""

Value = TypeVar("Value")


class Query:
    """The parameters that a client sent."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values_by_name: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values_by_name.setdefault(name, []).append(value)
        self._read_names: set[str] = set()

    @classmethod
    def of(cls, request: AnyRequest) -> Self:
        """Return the query of a request, or refuse one of too many parameters."""
        text = request.scope["query_string"].decode("latin-1")
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
        except ValueError as error:
            wanted = f"at most {PARAMETERS_MAX} parameters"
            raise MalformedQuery("the query", wanted) from error
        return cls(pairs)

    def read(self, parameter: Parameter[Value]) -> Value:
        """Return the value of a parameter, or refuse a malformed one; `name[]` is `name` too."""
        spellings = [spelling for name in parameter.names for spelling in (name, name + LIST_MARK)]
        self._read_names.update(spellings)
        return parameter.parse(
            [value for spelling in spellings for value in self._values_by_name.get(spelling, ())]
        )

    def check(self, parameters: Iterable[Parameter[Any]]) -> None:
        """Refuse malformed and unknown parameters, without using the values."""
        for parameter in parameters:
            self.read(parameter)
        self.check_known()

    def check_known(self) -> None:
        """Refuse names that were not read, if the client is strict; read all parameters before."""
        is_strict = self.read(STRICT)
        unknown = sorted(set(self._values_by_name) - self._read_names)
        if is_strict and unknown:
            raise UnknownParameter(unknown[0][:TEXT_CHARS_MAX])


async def check_no_parameters(request: AnyRequest) -> None:
    """Refuse parameters of a route that takes none, if the client is strict.

    Runs before every route of an API. A route that takes parameters calls `Query.check_known` itself
    after it has read them all.
    """
    handler = request.route_handler
    assert isinstance(handler, HTTPRouteHandler)
    if request.method == "GET" and request.scope["query_string"] and not takes_parameters(handler):
        Query.of(request).check_known()

"""The parameters of one GET request, read by name and typed.

A query remembers which names were asked for. Those that nobody asked for are ignored, as clients of
other versions send them, unless the client itself wants strictness: `strict=true` refuses them.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Final, Self, TypeVar
from urllib.parse import parse_qsl

from litestar.handlers import HTTPRouteHandler

from foretell.domain.errors.http import MalformedQuery, MissingParameter, UnknownParameter
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX, UNITS_DECIMALS
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.codec import AnyRequest
from foretell.edge.openapi import takes_parameters
from foretell.edge.paging import (
    IDS_MAX,
    parse_boolean,
    parse_choice,
    parse_conditions,
    parse_integer,
    parse_list,
    parse_wallet,
)
from foretell.edge.parameters import Parameter

PARAMETERS_MAX: Final = 1000

Value = TypeVar("Value")
TEXT_CHARS_MAX: Final = 256
ID_MAX: Final = AMOUNT_UNITS_MAX

_DECIMAL: Final = re.compile(r"(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,2})?\Z", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STRICT: Final = "strict"


class Query:
    """What stands behind the question mark."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values_by_name: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values_by_name.setdefault(name, []).append(value)
        self._asked: set[str] = {_STRICT}

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
        """Return the value of a parameter, or refuse a malformed one."""
        return parameter.parse(self._values(parameter.names))

    def text(self, *names: str, chars_max: int = TEXT_CHARS_MAX) -> str | None:
        """Return a text, or None when it is absent or empty; later names are other spellings."""
        values = [value for value in self._values(names) if value]
        if not values:
            return None
        _check_text(names[0], values[0], chars_max)
        return values[0]

    def required(self, *names: str) -> str:
        """Return a text that must be there."""
        value = self.text(*names)
        if value is None:
            raise MissingParameter(names[0])
        return value

    def entries(self, *names: str, entries_max: int = IDS_MAX) -> list[str]:
        """Return the entries of a list, comma-separated, repeated, or both; none when absent."""
        entries = parse_list(self._values(names), names[0], entries_max)
        for entry in entries:
            _check_text(names[0], entry, TEXT_CHARS_MAX)
        return entries

    def ids(self, *names: str) -> list[int]:
        """Return a list of numeric ids; none when absent."""
        return [parse_integer(entry, names[0], 0, 0, ID_MAX) for entry in self.entries(*names)]

    def conditions(self, *names: str) -> list[Bytes32]:
        """Return a list of condition ids; none when absent."""
        return parse_conditions(self._values(names), names[0])

    def wallet(self, name: str) -> Address:
        """Return an address that must be there."""
        return parse_wallet(self.required(name), name)

    def optional_wallet(self, name: str) -> Address | None:
        """Return an address, or None when it is absent."""
        value = self.text(name)
        return None if value is None else parse_wallet(value, name)

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """Return an integer of a range, or its default."""
        return parse_integer(self.text(name), name, default, least, most)

    def optional_integer(self, name: str, least: int, most: int) -> int | None:
        """Return an integer of a range, or None when it is absent."""
        value = self.text(name)
        return None if value is None else parse_integer(value, name, least, least, most)

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return a boolean, or its default."""
        return parse_boolean(self.text(name), name, default=default)

    def optional_boolean(self, *names: str) -> bool | None:
        """Return a boolean, or None when it is absent."""
        value = self.text(*names)
        return None if value is None else parse_boolean(value, names[0], default=False)

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """Return one of the choices in its own spelling, or the default."""
        return parse_choice(self.text(name), name, default, choices)

    def units(self, *names: str) -> int | None:
        """Return a decimal number as base units, rounded up: a least amount stays a least amount."""
        value = self.text(*names)
        if value is None:
            return None
        if _DECIMAL.match(value) is None:
            raise MalformedQuery(names[0], "a decimal number, 0 or more")
        scaled = Decimal(value).scaleb(UNITS_DECIMALS)
        if scaled > AMOUNT_UNITS_MAX:
            raise MalformedQuery(names[0], f"at most {AMOUNT_UNITS_MAX} base units")
        return int(scaled.to_integral_value(ROUND_CEILING))

    def instant_ms(self, *names: str) -> int | None:
        """Return a moment in milliseconds since 1970; one without an offset is UTC."""
        value = self.text(*names)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise MalformedQuery(names[0], "an ISO 8601 date or timestamp") from error
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(milliseconds=1)

    def skip(self, *names: str) -> None:
        """Know parameters that change nothing here."""
        self._asked.update(names)

    def check_known(self) -> None:
        """Refuse names that nobody asked for, if the client wants that; ask for all before."""
        unknown = sorted(set(self._values_by_name) - self._asked)
        if self.boolean(_STRICT, default=False) and unknown:
            raise UnknownParameter(unknown[0][:TEXT_CHARS_MAX])

    def _values(self, names: Sequence[str]) -> list[str]:
        """Return the values under any of the names; `name[]` is `name` too."""
        spellings = [spelling for name in names for spelling in (name, f"{name}[]")]
        self._asked.update(spellings)
        return [value for spelling in spellings for value in self._values_by_name.get(spelling, ())]


async def check_taken(request: AnyRequest) -> None:
    """Refuse parameters of a route that takes none, if the client wants that.

    Runs before every route of an API; a route that takes some checks them itself once it has asked
    for all (`Query.check_known`).
    """
    handler = request.route_handler
    assert isinstance(handler, HTTPRouteHandler)
    if request.method == "GET" and request.scope["query_string"] and not takes_parameters(handler):
        Query.of(request).check_known()


def _check_text(name: str, value: str, chars_max: int) -> None:
    if len(value) > chars_max or "\0" in value:
        raise MalformedQuery(name, f"at most {chars_max} characters, none of them zero")

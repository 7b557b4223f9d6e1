"""Query parameters, each declared once: its spellings, bounds, default and meaning.

`Query.read` parses a parameter and `openapi.taking` documents it, both from the same declaration. A
value that is empty counts as absent. Refusals name the first spelling.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Final, Generic, TypeVar

from litestar.openapi.spec import OpenAPIType, Schema
from litestar.openapi.spec import Parameter as ParameterObject

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery, MissingParameter
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX, UNITS_DECIMALS
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_address, parse_bytes32

TEXT_CHARS_MAX: Final = 256
ENTRIES_MAX: Final = 500
ID_MAX: Final = AMOUNT_UNITS_MAX

_DECIMAL: Final = re.compile(r"(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,2})?\Z", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Parameter(Generic[Value]):
    """One query parameter; `parse` gets the values under all its spellings, in their order."""

    names: tuple[str, ...]
    about: str
    schema: Schema
    parse: Callable[[Sequence[str]], Value]
    is_required: bool = False

    def document(self) -> ParameterObject:
        """Return what the OpenAPI document says of it."""
        is_list = self.schema.type is OpenAPIType.ARRAY
        return ParameterObject(
            name=self.names[0],
            param_in="query",
            description=self.about,
            required=self.is_required,
            schema=self.schema,
            style="form" if is_list else None,
            explode=False if is_list else None,
        )


def text(
    name: str, about: str, *aliases: str, chars_max: int = TEXT_CHARS_MAX
) -> Parameter[str | None]:
    """Declare a text, None when it is absent."""

    def parse(values: Sequence[str]) -> str | None:
        value = _first(values)
        return None if value is None else _checked(name, value, chars_max)

    return Parameter((name, *aliases), about, Schema(type=OpenAPIType.STRING), parse)


def required_text(name: str, about: str, *aliases: str) -> Parameter[str]:
    """Declare a text that must be there."""
    schema = Schema(type=OpenAPIType.STRING)
    return _required((name, *aliases), about, schema, lambda value: _checked(name, value))


def integer(name: str, default: int, least: int, most: int, about: str = "") -> Parameter[int]:
    """Declare an integer of a range, with a default."""

    def parse(values: Sequence[str]) -> int:
        value = _first(values)
        return default if value is None else parse_integer(value, name, least, most)

    schema = Schema(type=OpenAPIType.INTEGER, default=default, minimum=least, maximum=most)
    return Parameter((name,), about, schema, parse)


def optional_integer(name: str, least: int, most: int, about: str = "") -> Parameter[int | None]:
    """Declare an integer of a range, None when it is absent."""

    def parse(values: Sequence[str]) -> int | None:
        value = _first(values)
        return None if value is None else parse_integer(value, name, least, most)

    schema = Schema(type=OpenAPIType.INTEGER, minimum=least, maximum=most)
    return Parameter((name,), about, schema, parse)


def boolean(name: str, about: str, *, default: bool) -> Parameter[bool]:
    """Declare a boolean with a default."""

    def parse(values: Sequence[str]) -> bool:
        value = _first(values)
        return default if value is None else _boolean(value, name)

    return Parameter((name,), about, Schema(type=OpenAPIType.BOOLEAN, default=default), parse)


def optional_boolean(name: str, about: str, *aliases: str) -> Parameter[bool | None]:
    """Declare a boolean, None when it is absent."""

    def parse(values: Sequence[str]) -> bool | None:
        value = _first(values)
        return None if value is None else _boolean(value, name)

    return Parameter((name, *aliases), about, Schema(type=OpenAPIType.BOOLEAN), parse)


def choice(name: str, about: str, among: Sequence[str], default: str) -> Parameter[str]:
    """Declare one of some words, sent in any case, with a default."""

    def parse(values: Sequence[str]) -> str:
        value = _first(values)
        return default if value is None else _choice(value, name, among)

    schema = Schema(type=OpenAPIType.STRING, enum=list(among), default=default)
    return Parameter((name,), about, schema, parse)


def optional_choice(name: str, about: str, among: Sequence[str]) -> Parameter[str | None]:
    """Declare one of some words, sent in any case, None when it is absent."""

    def parse(values: Sequence[str]) -> str | None:
        value = _first(values)
        return None if value is None else _choice(value, name, among)

    return Parameter((name,), about, Schema(type=OpenAPIType.STRING, enum=list(among)), parse)


def entries(
    name: str, about: str, *aliases: str, entries_max: int = ENTRIES_MAX
) -> Parameter[list[str]]:
    """Declare a list, comma-separated, repeated, or both; empty when it is absent."""

    def parse(values: Sequence[str]) -> list[str]:
        return [_checked(name, entry) for entry in _entries(values, name, entries_max)]

    return Parameter((name, *aliases), about, _list_schema(), parse)


def ids(
    name: str, about: str, *aliases: str, entries_max: int = ENTRIES_MAX
) -> Parameter[list[int]]:
    """Declare a list of numeric ids; empty when it is absent."""

    def parse(values: Sequence[str]) -> list[int]:
        return [
            parse_integer(entry, name, 0, ID_MAX) for entry in _entries(values, name, entries_max)
        ]

    return Parameter((name, *aliases), about, _list_schema(), parse)


def conditions(name: str, about: str, *aliases: str) -> Parameter[list[Bytes32]]:
    """Declare a list of condition ids; empty when it is absent."""

    def parse(values: Sequence[str]) -> list[Bytes32]:
        return _conditions(values, name)

    return Parameter((name, *aliases), about, _list_schema(), parse)


def required_conditions(name: str, about: str) -> Parameter[list[Bytes32]]:
    """Declare a list of condition ids that must not be empty."""

    def parse(values: Sequence[str]) -> list[Bytes32]:
        condition_ids = _conditions(values, name)
        if not condition_ids:
            raise MissingParameter(name)
        return condition_ids

    return Parameter((name,), about, _list_schema(), parse, is_required=True)


def wallet(name: str, about: str) -> Parameter[Address]:
    """Declare an address that must be there."""
    schema = Schema(type=OpenAPIType.STRING)
    return _required((name,), about, schema, lambda value: parse_wallet(value, name))


def optional_wallet(name: str, about: str) -> Parameter[Address | None]:
    """Declare an address, None when it is absent."""

    def parse(values: Sequence[str]) -> Address | None:
        value = _first(values)
        return None if value is None else parse_wallet(value, name)

    return Parameter((name,), about, Schema(type=OpenAPIType.STRING), parse)


def units(name: str, about: str, *aliases: str) -> Parameter[int | None]:
    """Declare a decimal number, read as base units; None when it is absent.

    It is rounded up, so that a least amount stays a least amount.
    """

    def parse(values: Sequence[str]) -> int | None:
        value = _first(values)
        return None if value is None else _units(value, name)

    return Parameter((name, *aliases), about, Schema(type=OpenAPIType.NUMBER, minimum=0), parse)


def units_or(name: str, about: str, *, default: int) -> Parameter[int]:
    """Declare a decimal number, read as base units; the default is in whole tokens."""

    def parse(values: Sequence[str]) -> int:
        value = _first(values)
        return default * 10**UNITS_DECIMALS if value is None else _units(value, name)

    schema = Schema(type=OpenAPIType.NUMBER, default=default, minimum=0)
    return Parameter((name,), about, schema, parse)


def instant_ms(name: str, about: str, *aliases: str) -> Parameter[int | None]:
    """Declare a moment in ISO 8601, read as milliseconds since 1970; UTC without an offset."""

    def parse(values: Sequence[str]) -> int | None:
        value = _first(values)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(_checked(name, value))
        except ValueError as error:
            raise MalformedQuery(name, "an ISO 8601 date or timestamp") from error
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(milliseconds=1)

    return Parameter((name, *aliases), about, Schema(type=OpenAPIType.STRING), parse)


def parse_integer(value: str, name: str, least: int, most: int) -> int:
    """Return an integer of a range, or refuse."""
    sign, digits = (-1, value[1:]) if value.startswith("-") else (1, value)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(most)):
        raise MalformedQuery(name, f"an integer from {least} to {most}")
    number = sign * int(digits)
    if not least <= number <= most:
        raise MalformedQuery(name, f"an integer from {least} to {most}")
    return number


def parse_wallet(value: str, name: str) -> Address:
    """Return the address that a parameter spells, or refuse."""
    try:
        return parse_address(value, name)
    except MalformedHex as error:
        raise MalformedQuery(name, "an address: 0x and 40 hex digits") from error


def _required(
    names: tuple[str, ...], about: str, schema: Schema, parse_one: Callable[[str], Value]
) -> Parameter[Value]:
    def parse(values: Sequence[str]) -> Value:
        value = _first(values)
        if value is None:
            raise MissingParameter(names[0])
        return parse_one(value)

    return Parameter(names, about, schema, parse, is_required=True)


def _list_schema() -> Schema:
    return Schema(type=OpenAPIType.ARRAY, items=Schema(type=OpenAPIType.STRING))


def _first(values: Sequence[str]) -> str | None:
    return next(filter(None, values), None)


def _checked(name: str, value: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    if len(value) > chars_max or "\0" in value:
        raise MalformedQuery(name, f"at most {chars_max} characters, none of them zero")
    return value


def _boolean(value: str, name: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise MalformedQuery(name, "true or false")
    return _BOOLEANS[value.lower()]


def _choice(value: str, name: str, among: Sequence[str]) -> str:
    by_case = {each.lower(): each for each in among}
    if value.lower() not in by_case:
        raise MalformedQuery(name, f"one of {', '.join(among)}")
    return by_case[value.lower()]


def _entries(values: Sequence[str], name: str, entries_max: int) -> list[str]:
    found = [entry for value in values for entry in value.split(",") if entry]
    if len(found) > entries_max:
        raise MalformedQuery(name, f"at most {entries_max} entries")
    return found


def _conditions(values: Sequence[str], name: str) -> list[Bytes32]:
    try:
        return [parse_bytes32(entry, name) for entry in _entries(values, name, ENTRIES_MAX)]
    except MalformedHex as error:
        raise MalformedQuery(name, "condition ids: 0x and 64 hex digits") from error


def _units(value: str, name: str) -> int:
    if _DECIMAL.match(_checked(name, value)) is None:
        raise MalformedQuery(name, "a decimal number, 0 or more")
    scaled = Decimal(value).scaleb(UNITS_DECIMALS)
    if scaled > AMOUNT_UNITS_MAX:
        raise MalformedQuery(name, f"at most {AMOUNT_UNITS_MAX} base units")
    return int(scaled.to_integral_value(ROUND_CEILING))

"""Query parameters, each declared once: its spellings, bounds, default and meaning.

`Query.read` parses a parameter and `documents.openapi` describes it, both from the same declaration. An
empty value counts as absent, and of several values the first one counts, except in lists. Refusals
name the first spelling.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final, Generic, Self, TypeVar

from litestar.openapi.spec import OpenAPIType, Schema
from litestar.openapi.spec import Parameter as ParameterObject

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery, MissingParameter
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX, UNITS_DECIMALS
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_address, parse_bytes32
from foretell.domain.values.instants import unix_ms

TEXT_CHARS_MAX: Final = 256
ENTRIES_MAX: Final = 500
ID_MAX: Final = AMOUNT_UNITS_MAX

_DECIMAL: Final = re.compile(r"(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,2})?\Z", re.ASCII)
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Parameter(Generic[Value_co]):
    """One query parameter; `parse` gets the values under all its spellings, in their order."""

    names: tuple[str, ...]
    about: str
    schema: Schema
    parse: Callable[[Sequence[str]], Value_co]
    is_required: bool = False
    is_documented: bool = True
    is_in_path: bool = False
    """Whether a part of the path has it: it is described here, and its route parses it."""

    def convert(self, to: Callable[[Value_co], Value]) -> "Parameter[Value]":
        """Return the parameter with its value converted; the conversion may refuse."""
        return Parameter(
            self.names,
            self.about,
            self.schema,
            lambda values: to(self.parse(values)),
            self.is_required,
            self.is_documented,
            self.is_in_path,
        )

    def hidden(self) -> Self:
        """Return the parameter as one that the OpenAPI document leaves out."""
        return replace(self, is_documented=False)

    def in_path(self) -> Self:
        """Return the parameter as one that a part of the path has."""
        return replace(self, is_in_path=True)

    def document(self) -> dict[str, Any]:
        """Return the parameter's entry in the OpenAPI document."""
        is_list = self.schema.type is OpenAPIType.ARRAY
        return ParameterObject(
            name=self.names[0],
            param_in="path" if self.is_in_path else "query",
            description=self.about,
            required=self.is_required,
            schema=self.schema,
            style="form" if is_list else None,
            explode=False if is_list else None,
        ).to_schema()


def text(
    name: str, about: str, *aliases: str, chars_max: int = TEXT_CHARS_MAX
) -> Parameter[str | None]:
    """Declare a text, None when it is absent."""
    schema = Schema(type=OpenAPIType.STRING)
    return _optional((name, *aliases), about, schema, lambda value: value, chars_max)


def required_text(name: str, about: str, *aliases: str) -> Parameter[str]:
    """Declare a required text."""
    schema = Schema(type=OpenAPIType.STRING)
    return _required((name, *aliases), about, schema, lambda value: value)


def integer(name: str, default: int, least: int, most: int, about: str = "") -> Parameter[int]:
    """Declare an integer of a range, with a default."""
    schema = Schema(type=OpenAPIType.INTEGER, default=default, minimum=least, maximum=most)
    return _defaulted(
        name, about, schema, default, lambda value: parse_integer(value, name, least, most)
    )


def clamped_integer(
    name: str, default: int, least: int, most: int, about: str = ""
) -> Parameter[int]:
    """Declare an integer of a range, with a default; a larger one counts as the largest."""
    schema = Schema(type=OpenAPIType.INTEGER, default=default, minimum=least, maximum=most)
    return _defaulted(
        name, about, schema, default, lambda value: min(parse_integer(value, name, least), most)
    )


def optional_integer(name: str, least: int, most: int, about: str = "") -> Parameter[int | None]:
    """Declare an integer of a range, None when it is absent."""
    schema = Schema(type=OpenAPIType.INTEGER, minimum=least, maximum=most)
    return _optional((name,), about, schema, lambda value: parse_integer(value, name, least, most))


def boolean(name: str, about: str, *, default: bool) -> Parameter[bool]:
    """Declare a boolean with a default."""
    schema = Schema(type=OpenAPIType.BOOLEAN, default=default)
    return _defaulted(name, about, schema, default, lambda value: _parse_boolean(value, name))


def optional_boolean(name: str, about: str, *aliases: str) -> Parameter[bool | None]:
    """Declare a boolean, None when it is absent."""
    schema = Schema(type=OpenAPIType.BOOLEAN)
    return _optional((name, *aliases), about, schema, lambda value: _parse_boolean(value, name))


def choice(name: str, about: str, among: Sequence[str], default: str) -> Parameter[str]:
    """Declare one of some words, sent in any case, with a default."""
    schema = Schema(type=OpenAPIType.STRING, enum=list(among), default=default)
    return _defaulted(name, about, schema, default, lambda value: _parse_choice(value, name, among))


def required_choice(name: str, about: str, among: Sequence[str]) -> Parameter[str]:
    """Declare a required one of some words, sent in any case."""
    schema = Schema(type=OpenAPIType.STRING, enum=list(among))
    return _required((name,), about, schema, lambda value: _parse_choice(value, name, among))


def optional_choice(name: str, about: str, among: Sequence[str]) -> Parameter[str | None]:
    """Declare one of some words, sent in any case, None when it is absent."""
    schema = Schema(type=OpenAPIType.STRING, enum=list(among))
    return _optional((name,), about, schema, lambda value: _parse_choice(value, name, among))


def entries(
    name: str, about: str, *aliases: str, entries_max: int = ENTRIES_MAX
) -> Parameter[list[str]]:
    """Declare a list, comma-separated, repeated, or both; empty when it is absent."""
    return _list(
        (name, *aliases), about, lambda values: _checked_entries(values, name, entries_max)
    )


def ids(
    name: str, about: str, *aliases: str, entries_max: int = ENTRIES_MAX
) -> Parameter[list[int]]:
    """Declare a list of numeric ids; empty when it is absent."""

    def parse(values: Sequence[str]) -> list[int]:
        found = _checked_entries(values, name, entries_max)
        return [parse_integer(entry, name, 0) for entry in found]

    return _list((name, *aliases), about, parse)


def conditions(name: str, about: str, *aliases: str) -> Parameter[list[Bytes32]]:
    """Declare a list of condition ids; empty when it is absent."""
    return _list((name, *aliases), about, lambda values: _parse_conditions(values, name))


def required_conditions(name: str, about: str) -> Parameter[list[Bytes32]]:
    """Declare a list of condition ids that must not be empty."""

    def parse(values: Sequence[str]) -> list[Bytes32]:
        condition_ids = _parse_conditions(values, name)
        if not condition_ids:
            raise MissingParameter(name)
        return condition_ids

    return _list((name,), about, parse, is_required=True)


def wallet(name: str, about: str) -> Parameter[Address]:
    """Declare a required address."""
    schema = Schema(type=OpenAPIType.STRING)
    return _required((name,), about, schema, lambda value: parse_wallet(value, name))


def optional_wallet(name: str, about: str) -> Parameter[Address | None]:
    """Declare an address, None when it is absent."""
    schema = Schema(type=OpenAPIType.STRING)
    return _optional((name,), about, schema, lambda value: parse_wallet(value, name))


def units(name: str, about: str, *aliases: str) -> Parameter[int | None]:
    """Declare a decimal number, read as base units; None when it is absent.

    It is rounded up, so that a least amount stays a least amount.
    """
    schema = Schema(type=OpenAPIType.NUMBER, minimum=0)
    return _optional((name, *aliases), about, schema, lambda value: _parse_units(value, name))


def units_or(name: str, about: str, *, default: int) -> Parameter[int]:
    """Declare a decimal number, read as base units; the default is in whole tokens."""
    schema = Schema(type=OpenAPIType.NUMBER, default=default, minimum=0)
    default_units = default * 10**UNITS_DECIMALS
    return _defaulted(name, about, schema, default_units, lambda value: _parse_units(value, name))


def instant_ms(name: str, about: str, *aliases: str) -> Parameter[int | None]:
    """Declare a moment in ISO 8601, read as milliseconds since 1970; UTC without an offset."""
    schema = Schema(type=OpenAPIType.STRING)
    return _optional((name, *aliases), about, schema, lambda value: _parse_instant_ms(value, name))


def ignored(*names: str) -> Parameter[None]:
    """Declare parameters that clients send and that change nothing; they are not documented."""
    return Parameter(names, "", Schema(), lambda _values: None, is_documented=False)


def parse_integer(value: str, name: str, least: int, most: int = ID_MAX) -> int:
    """Return an integer of a range, or refuse."""
    sign, digits = (-1, value[1:]) if value.startswith("-") else (1, value)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(most)):
        raise MalformedQuery(name, f"an integer from {least} to {most}")
    number = sign * int(digits)
    if not least <= number <= most:
        raise MalformedQuery(name, f"an integer from {least} to {most}")
    return number


def parse_wallet(value: str, name: str) -> Address:
    """Return the address in a parameter, or refuse."""
    try:
        return parse_address(value, name)
    except MalformedHex as error:
        raise MalformedQuery(name, "an address: 0x and 40 hex digits") from error


def _required(
    names: tuple[str, ...], about: str, schema: Schema, parse_one: Callable[[str], Value]
) -> Parameter[Value]:
    def parse(values: Sequence[str]) -> Value:
        value = _first(values, names[0])
        if value is None:
            raise MissingParameter(names[0])
        return parse_one(value)

    return Parameter(names, about, schema, parse, is_required=True)


def _defaulted(
    name: str, about: str, schema: Schema, default: Value, parse_one: Callable[[str], Value]
) -> Parameter[Value]:
    def parse(values: Sequence[str]) -> Value:
        value = _first(values, name)
        return default if value is None else parse_one(value)

    return Parameter((name,), about, schema, parse)


def _optional(
    names: tuple[str, ...],
    about: str,
    schema: Schema,
    parse_one: Callable[[str], Value],
    chars_max: int = TEXT_CHARS_MAX,
) -> Parameter[Value | None]:
    def parse(values: Sequence[str]) -> Value | None:
        value = _first(values, names[0], chars_max)
        return None if value is None else parse_one(value)

    return Parameter(names, about, schema, parse)


def _list(
    names: tuple[str, ...],
    about: str,
    parse: Callable[[Sequence[str]], Value],
    *,
    is_required: bool = False,
) -> Parameter[Value]:
    schema = Schema(type=OpenAPIType.ARRAY, items=Schema(type=OpenAPIType.STRING))
    return Parameter(names, about, schema, parse, is_required=is_required)


def _first(values: Sequence[str], name: str, chars_max: int = TEXT_CHARS_MAX) -> str | None:
    """Return the first value that is not empty, or None."""
    value = next(filter(None, values), None)
    if value is not None:
        _check_text(value, name, chars_max)
    return value


def _entries(values: Sequence[str], name: str, entries_max: int) -> list[str]:
    found = [entry for value in values for entry in value.split(",") if entry]
    if len(found) > entries_max:
        raise MalformedQuery(name, f"at most {entries_max} entries")
    return found


def _checked_entries(values: Sequence[str], name: str, entries_max: int) -> list[str]:
    found = _entries(values, name, entries_max)
    for entry in found:
        _check_text(entry, name, TEXT_CHARS_MAX)
    return found


def _check_text(value: str, name: str, chars_max: int) -> None:
    if len(value) > chars_max or "\0" in value:
        raise MalformedQuery(name, f"at most {chars_max} characters, none of them zero")


def _parse_boolean(value: str, name: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise MalformedQuery(name, "true or false")
    return _BOOLEANS[value.lower()]


def _parse_choice(value: str, name: str, among: Sequence[str]) -> str:
    by_case = {each.lower(): each for each in among}
    if value.lower() not in by_case:
        raise MalformedQuery(name, f"one of {', '.join(among)}")
    return by_case[value.lower()]


def _parse_conditions(values: Sequence[str], name: str) -> list[Bytes32]:
    try:
        return [parse_bytes32(entry, name) for entry in _entries(values, name, ENTRIES_MAX)]
    except MalformedHex as error:
        raise MalformedQuery(name, "condition ids: 0x and 64 hex digits") from error


def _parse_units(value: str, name: str) -> int:
    if _DECIMAL.match(value) is None:
        raise MalformedQuery(name, "a decimal number, 0 or more")
    scaled = Decimal(value).scaleb(UNITS_DECIMALS)
    if scaled > AMOUNT_UNITS_MAX:
        raise MalformedQuery(name, f"at most {AMOUNT_UNITS_MAX} base units")
    return int(scaled.to_integral_value(ROUND_CEILING))


def _parse_instant_ms(value: str, name: str) -> int:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise MalformedQuery(name, "an ISO 8601 date or timestamp") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return unix_ms(moment)

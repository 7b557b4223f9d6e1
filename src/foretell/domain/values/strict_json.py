"""Strict parser of JSON from clients.

A repeated key, a number without an exact value, an unpaired surrogate or deep nesting is refused,
because other parsers could read the same bytes differently.
"""

import json
import math
import re
from typing import Any, Final, NoReturn

from foretell.domain.errors.http import MalformedBody

DEPTH_MAX: Final = 32
DIGITS_MAX: Final = 32
NAME_SHOWN_CHARS_MAX: Final = 64

_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def parse_json(raw: bytes) -> Any:
    """Return the parsed JSON, or refuse it."""
    check_depth(raw)
    try:
        parsed = json.loads(
            raw.decode(),
            object_pairs_hook=_pairs,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as error:
        raise MalformedBody(f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise MalformedBody(f"line {error.lineno}, column {error.colno} is not JSON") from error
    _check_text(parsed)
    return parsed


def check_depth(raw: bytes) -> None:
    """Refuse JSON that is nested so deep that a decoder could exhaust its stack."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return
    depth = 0
    for token in _BRACKETS.finditer(raw):
        first = token[0][:1]
        depth += 1 if first in b"[{" else -1 if first in b"]}" else 0
        if depth > DEPTH_MAX:
            raise MalformedBody(f"nested more than {DEPTH_MAX} deep")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise MalformedBody(f"the key {name[:NAME_SHOWN_CHARS_MAX]!r} is there twice")
        fields[name] = value
    return fields


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise MalformedBody(f"a number has more than {DIGITS_MAX} digits")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedBody(f"the number {text[:DIGITS_MAX]} is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise MalformedBody(f"{name} is not JSON")


def _check_text(value: Any) -> None:
    """Refuse unpaired surrogates, which UTF-8 cannot encode."""
    match value:
        case str():
            if not value.isascii():
                _check_characters(value)
        case dict():
            for name, field in value.items():
                _check_text(name)
                _check_text(field)
        case list():
            for entry in value:
                _check_text(entry)
        case _:
            pass


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MalformedBody("a string has an unpaired surrogate") from error

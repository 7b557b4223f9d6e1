"""Strict parser of JSON from clients.

A repeated key, a number without an exact value, an unpaired surrogate or deep nesting is refused,
because other parsers could read the same bytes differently.
"""

import json
import math
from typing import Any, Final, NoReturn

from foretell.domain.errors.http import MalformedBody

DEPTH_MAX: Final = 32
DIGITS_MAX: Final = 32
VALUES_MAX: Final = 10_000
"""Arrays, objects and their entries together: each of them takes the parser about a microsecond."""
NAME_SHOWN_CHARS_MAX: Final = 64

_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SAME_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")


def parse_json(raw: bytes) -> Any:
    """Return the parsed JSON, or refuse it."""
    outside = _outside_texts(raw)
    _check_nesting(outside)
    if sum(map(outside.count, (b",", b":", b"[", b"{"))) > VALUES_MAX:
        raise MalformedBody(f"more than {VALUES_MAX} names and values")
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
    """Refuse JSON that is nested so deep that a decoder could exhaust its stack.

    Text that is no JSON may pass with up to twice the depth.
    """
    if raw.count(b"[") + raw.count(b"{") > DEPTH_MAX:
        _check_nesting(_outside_texts(raw))


def _outside_texts(raw: bytes) -> bytes:
    """Return JSON without its strings, of which one without an end goes on to the end of it."""
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])


def _check_nesting(outside: bytes) -> None:
    """Take away the innermost pairs of brackets as often as they may be nested: few operations of the whole."""
    brackets = outside.translate(_SAME_BRACKETS, _NO_BRACKETS)
    for _ in range(DEPTH_MAX):
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets or brackets.count(b"[") > DEPTH_MAX:
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

"""Strict parser of JSON from clients.

A repeated key, a number without an exact value, an unpaired surrogate or deep nesting is refused,
because other parsers could read the same bytes differently.
"""

import json
import math
import re
from collections import Counter
from typing import Any, Final, NoReturn

from foretell.domain.errors.http import MalformedBody

DEPTH_MAX: Final = 32
DIGITS_MAX: Final = 32
VALUES_MAX: Final = 10_000
"""Arrays, objects and their entries together, because the parser's time grows with them."""
NAME_SHOWN_CHARS_MAX: Final = 64

_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SAME_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_VALUES: Final = bytes(set(range(256)) - set(b",:[{"))
_ONLY_DIGITS: Final = bytes(each if each in b"0123456789" else ord(" ") for each in range(256))
_EQUAL_DIGITS: Final = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE_EXPONENT: Final = b"e000"
"""In each number beyond a float that has fewer than `DIGITS_MAX` digits in a row, once all digits are equal."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_PAIR_OF_SURROGATES: Final = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..")


def parse_json(raw: bytes) -> Any:
    """Return the parsed JSON, or refuse it."""
    outside = _outside_texts(raw)
    _check_nesting(outside)
    if len(outside.translate(None, _NO_VALUES)) > VALUES_MAX:
        raise MalformedBody(f"more than {VALUES_MAX} names and values")
    is_usual = _has_usual_numbers(outside)
    try:
        parsed = json.loads(
            raw.decode(),
            object_pairs_hook=_pairs,
            parse_int=None if is_usual else _integer,
            parse_float=None if is_usual else _number,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as error:
        raise MalformedBody(f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise MalformedBody(f"line {error.lineno}, column {error.colno} is not JSON") from error
    _check_surrogates(raw)
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


def _has_usual_numbers(outside: bytes) -> bool:
    """Return whether no number may be too long or too large, so that none has to be looked at.

    The time grows with the bytes only; a regular expression would begin again at each digit.
    """
    digits_max = max(map(len, outside.translate(_ONLY_DIGITS).split()), default=0)
    return digits_max < DIGITS_MAX and _LARGE_EXPONENT not in outside.translate(_EQUAL_DIGITS, b"+")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        name = next(name for name, count in counted.items() if count > 1)
        raise MalformedBody(f"the key {name[:NAME_SHOWN_CHARS_MAX]!r} is there twice")
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


def _check_surrogates(raw: bytes) -> None:
    """Refuse unpaired surrogates, which UTF-8 cannot encode: of valid JSON in UTF-8, only escapes have them."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return
    escapes = raw.replace(b"\\\\", b"..")
    if _SURROGATE.search(_PAIR_OF_SURROGATES.sub(b"", escapes)) is not None:
        raise MalformedBody("a string has an unpaired surrogate")

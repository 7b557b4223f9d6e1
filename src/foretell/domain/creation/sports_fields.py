"""Readers of the fields of a sports payload that other payloads lack.

An absent or null field is None. A problem is recorded, and the reading continues.
"""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from foretell.domain.creation.slug_fields import read_slug
from foretell.domain.values.document_fields import Fields

LINE_MAX: Final = 10_000
LINE_DECIMALS_MAX: Final = 2

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_LINE: Final = re.compile(r"-?\d{1,5}(?:\.\d{1,9})?\Z", re.ASCII)
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*\Z")
_LINE_WANTED: Final = (
    f"must be a number from -{LINE_MAX} to {LINE_MAX} with at most {LINE_DECIMALS_MAX} decimals"
)


def optional_text(fields: Fields, name: str, chars_max: int) -> str | None:
    """Return a text."""
    return (fields.text(name, chars_max) or None) if fields.has(name) else None


def optional_key(fields: Fields, name: str, chars_max: int) -> str | None:
    """Return a key: letters from a to z, digits, and `_`, `.`, `:` or `-` between them."""
    key = optional_text(fields, name, chars_max)
    if key is not None and _KEY.match(key) is None:
        fields.refuse(name, "must be letters from a to z, digits, and _ . : or - after the first")
        return None
    return key


def optional_slug(fields: Fields, name: str) -> str | None:
    """Return a text as a slug."""
    return (read_slug(fields, name) or None) if fields.has(name) else None


def optional_flag(fields: Fields, name: str) -> bool:
    """Return a boolean, false when it is absent."""
    value = fields.value(name)
    if value is not None and not isinstance(value, bool):
        fields.refuse(name, "must be true or false")
    return value is True


def optional_date(fields: Fields, name: str) -> str | None:
    """Return a day of the calendar, as YYYY-MM-DD."""
    value = fields.value(name)
    if value is None:
        return None
    if isinstance(value, str) and _DATE.match(value) is not None:
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            pass
    fields.refuse(name, "must be a day of the calendar as YYYY-MM-DD")
    return None


def optional_share(fields: Fields, name: str) -> Decimal | None:
    """Return a number from 0 to 1."""
    value = fields.value(name)
    if value is None:
        return None
    number = None if isinstance(value, str) else _number(value)
    if number is None or not 0 <= number <= 1:
        fields.refuse(name, "must be a number from 0 to 1")
        return None
    return number


def optional_line(fields: Fields, name: str) -> Decimal | None:
    """Return a line, given as a number or as its digits."""
    return read_line(fields, name, fields.value(name)) if fields.has(name) else None


def read_line(fields: Fields, name: str, value: Any) -> Decimal | None:
    """Return a value as a line, or None."""
    is_digits = not isinstance(value, str) or _LINE.match(value) is not None
    line = _number(value) if is_digits else None
    if line is None or abs(line) > LINE_MAX or round(line, LINE_DECIMALS_MAX) != line:
        fields.refuse(name, _LINE_WANTED)
        return None
    return line.normalize() + 0


def objects(fields: Fields, name: str, most: int) -> Sequence[Fields]:
    """Return a reader for each object of an optional array."""
    entries = (fields.entries(name, most) or ()) if fields.has(name) else ()
    found = []
    for index, entry in enumerate(entries):
        if isinstance(entry, dict):
            found.append(fields.inside(f"{name}/{index}", entry))
        else:
            fields.refuse(f"{name}/{index}", "must be an object")
    return found


def _number(value: Any) -> Decimal | None:
    """Return a JSON number, or the digits of one, exactly as written."""
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        return None
    return Decimal(str(value))

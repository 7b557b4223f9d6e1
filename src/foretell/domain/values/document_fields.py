"""Reader of the fields of a parsed document, which reports all problems at once.

A read never raises: it returns an empty value and records the problem. `check` refuses at the end.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from foretell.domain.errors.families import FieldProblem, InvalidFields, MalformedHex
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    Address,
    Bytes32,
    parse_address,
    parse_bytes,
    parse_bytes32,
)
from foretell.domain.values.instants import unix_ms

PROBLEMS_MAX: Final = 50
URL_CHARS_MAX: Final = 2048

_LINE_BREAKS: Final = "\n\r\t"
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, among them those that change the direction of text."""

_INSTANT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)\Z", re.ASCII
)
INSTANT_WANTED: Final = (
    "must be an ISO 8601 timestamp with its offset from UTC, and in UTC of a year from 1 to 9999"
)
INSTANT_MS_MIN: Final = -62_135_596_800_000
INSTANT_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of year 9999 in UTC; the one above is the first of year 1."""


class Fields:
    """The fields of one object; `path` is its place in the document."""

    def __init__(
        self, values: Mapping[str, Any], path: str = "", problems: list[FieldProblem] | None = None
    ) -> None:
        self._values = values
        self._path = path
        self.problems: list[FieldProblem] = [] if problems is None else problems

    def refuse(self, name: str, message: str) -> None:
        """Record a problem of a field."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(FieldProblem(self._path + name, message))

    def check(self) -> None:
        """Refuse the document if any problem was recorded."""
        if self.problems:
            raise InvalidFields(self.problems)

    def value(self, name: str) -> Any:
        """Return the value of a field, None when it is absent."""
        return self._values.get(name)

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        return self._values.get(name) is not None

    def text(self, name: str, chars_max: int, *, may_break: bool = False) -> str:
        """Return a required text, trimmed; line breaks are allowed with `may_break`."""
        value = self._values.get(name)
        if not isinstance(value, str) or not value.strip():
            self.refuse(name, "must be a text that is not empty")
            return ""
        trimmed = value.strip()
        if len(trimmed) > chars_max:
            self.refuse(name, f"must have at most {chars_max} characters")
            return ""
        if _has_controls(trimmed, may_break=may_break):
            self.refuse(name, "must have no control characters")
            return ""
        return trimmed

    def choice(self, name: str, choices: Mapping[str, str]) -> str | None:
        """Return the value of one of the choices, or None."""
        value = self._values.get(name)
        if not isinstance(value, str) or value not in choices:
            self.refuse(name, f"must be one of {', '.join(choices)}")
            return None
        return choices[value]

    def integer(self, name: str) -> int | None:
        """Return a required integer, or None."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(name, "must be an integer")
            return None
        return value

    def address(self, name: str) -> Address:
        """Return a required address."""
        try:
            return parse_address(self._values.get(name), name)
        except MalformedHex:
            self.refuse(name, "must be an address: 0x and 40 hex digits")
            return ZERO_ADDRESS

    def word(self, name: str) -> Bytes32:
        """Return a required word of 32 bytes."""
        try:
            return parse_bytes32(self._values.get(name), name)
        except MalformedHex:
            self.refuse(name, "must be 32 bytes: 0x and 64 hex digits")
            return ZERO_BYTES32

    def raw_bytes(self, name: str, bytes_max: int) -> bytes:
        """Return required bytes, given as hex."""
        try:
            return parse_bytes(self._values.get(name), name, bytes_max)
        except MalformedHex:
            self.refuse(name, f"must be at most {bytes_max} bytes: 0x and pairs of hex digits")
            return b""

    def instant_ms(self, name: str) -> int | None:
        """Return a required moment in milliseconds since 1970, or None."""
        moment_ms = parse_instant_ms(self._values.get(name))
        if moment_ms is None:
            self.refuse(name, INSTANT_WANTED)
        return moment_ms

    def url(self, name: str) -> str | None:
        """Return an optional http or https URL; it is never fetched."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or not is_web_url(value):
            self.refuse(name, "must be an http or https address without credentials")
            return None
        return value

    def entries(self, name: str, most: int) -> list[Any] | None:
        """Return a required list, or None."""
        value = self._values.get(name)
        if not isinstance(value, list):
            self.refuse(name, "must be an array")
            return None
        if len(value) > most:
            self.refuse(name, f"must have at most {most} entries")
            return None
        return value

    def inside(self, name: str, values: Mapping[str, Any]) -> "Fields":
        """Return the reader of a nested object; its problems are recorded with those of this one."""
        return Fields(values, f"{self._path}{name}/", self.problems)


def _has_controls(text: str, *, may_break: bool) -> bool:
    checked = text.translate(dict.fromkeys(map(ord, _LINE_BREAKS))) if may_break else text
    return _CONTROLS.search(checked) is not None


def parse_instant_ms(value: object) -> int | None:
    """Return the milliseconds since 1970 of an ISO 8601 timestamp with an offset, or None.

    Parts of a millisecond are cut off, and leap seconds are refused. The year in UTC is 1 to 9999,
    so that the result can be formatted again.
    """
    match = _INSTANT.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    date, time, second, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{time}:{second or '00'}{offset}")
    except ValueError:
        return None
    milliseconds = int((fraction or "").ljust(3, "0")[:3])
    moment_ms = unix_ms(moment) + milliseconds
    return moment_ms if INSTANT_MS_MIN <= moment_ms <= INSTANT_MS_MAX else None


def is_web_url(text: str) -> bool:
    """Return whether the text is an http or https address with a host and without credentials."""
    if len(text) > URL_CHARS_MAX or not text.isprintable() or " " in text or "\\" in text:
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
    return is_web and "@" not in parts.netloc

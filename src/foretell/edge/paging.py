"""Query parameters that several APIs share: limit, offset, comma-separated ids, booleans."""

from collections.abc import Sequence
from typing import Final

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_address, parse_bytes32

IDS_MAX: Final = 500


def parse_integer(text: str | None, field: str, default: int, least: int, most: int) -> int:
    """Return an integer parameter, its default when absent, or refuse one out of its range."""
    if text is None or text == "":
        return default
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(most)):
        raise MalformedQuery(field, f"an integer from {least} to {most}")
    value = sign * int(digits)
    if not least <= value <= most:
        raise MalformedQuery(field, f"an integer from {least} to {most}")
    return value


def parse_boolean(text: str | None, field: str, *, default: bool) -> bool:
    """Return a boolean parameter, or its default when absent."""
    values = {"true": True, "1": True, "false": False, "0": False}
    if text is None or text == "":
        return default
    if text.lower() not in values:
        raise MalformedQuery(field, "true or false")
    return values[text.lower()]


def parse_choice(text: str | None, field: str, default: str, choices: Sequence[str]) -> str:
    """Return one of the choices in its own spelling, whatever the case it was sent in."""
    if text is None or text == "":
        return default
    by_case = {choice.lower(): choice for choice in choices}
    if text.lower() not in by_case:
        raise MalformedQuery(field, f"one of {', '.join(choices)}")
    return by_case[text.lower()]


def parse_list(values: Sequence[str], field: str, ids_max: int = IDS_MAX) -> list[str]:
    """Return the entries of a parameter that is comma-separated, repeated, or both."""
    entries = [entry for value in values for entry in value.split(",") if entry]
    if len(entries) > ids_max:
        raise MalformedQuery(field, f"at most {ids_max} entries")
    return entries


def parse_conditions(values: Sequence[str], field: str = "market") -> list[Bytes32]:
    """Return the condition ids of a comma-separated parameter, or refuse a malformed one."""
    try:
        return [parse_bytes32(entry, field) for entry in parse_list(values, field)]
    except MalformedHex as error:
        raise MalformedQuery(field, "condition ids: 0x and 64 hex digits") from error


def parse_wallet(text: str | None, field: str = "user") -> Address:
    """Return the address that a required parameter spells, or refuse."""
    try:
        return parse_address(text, field)
    except MalformedHex as error:
        raise MalformedQuery(field, "an address: 0x and 40 hex digits") from error

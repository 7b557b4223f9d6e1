"""Ids and slugs in the paths of routes."""

from typing import Final

from foretell.domain.errors.http import MalformedQuery, UnknownRecord
from foretell.edge.parameters import ID_MAX

ID_DIGITS_MAX: Final = len(str(ID_MAX))


def parse_id(text: str) -> int:
    """Return the number in a path, or refuse any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= ID_DIGITS_MAX
    if not is_number or int(text) > ID_MAX:
        raise MalformedQuery("id", "a number")
    return int(text)


def parse_slug(text: str) -> str:
    """Return the slug in a path, or refuse a text that no slug can be."""
    if "\0" in text:
        raise UnknownRecord("slug")
    return text

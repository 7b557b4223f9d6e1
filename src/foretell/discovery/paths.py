"""Ids and slugs in the paths of routes."""

from foretell.domain.errors.http import MalformedQuery, UnknownRecord
from foretell.edge.parameters import ID_MAX


def parse_id(text: str) -> int:
    """Return the number in a path, or refuse any other text."""
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > ID_MAX:
        raise MalformedQuery("id", "a number")
    return int(text[:20])


def parse_slug(text: str) -> str:
    """Return the slug in a path, or refuse a text that no slug can be."""
    if "\0" in text:
        raise UnknownRecord("slug")
    return text

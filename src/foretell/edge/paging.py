"""Integers of a query that are read by name, without a declaration."""

from foretell.edge import parameters


def parse_integer(text: str | None, field: str, default: int, least: int, most: int) -> int:
    """Return an integer parameter, its default when absent, or refuse one out of its range."""
    return default if not text else parameters.parse_integer(text, field, least, most)

"""Slugs in the fields of a payload: normalized, and refused when nothing is left or too much."""

from foretell.domain.creation.text_limits import SLUG_TEXT_CHARS_MAX
from foretell.domain.values.document_fields import Fields
from foretell.domain.values.slugs import SLUG_CHARS_MAX, normalize_slug


def read_slug(fields: Fields, name: str) -> str:
    """Return the slug of a required text."""
    return checked_slug(fields, name, fields.text(name, SLUG_TEXT_CHARS_MAX))


def checked_slug(fields: Fields, name: str, text: str) -> str:
    """Return the slug of a text; problems are recorded at the named field."""
    slug = normalize_slug(text)
    if text and not slug:
        fields.refuse(name, "must have a letter from a to z or a digit")
    if len(slug) > SLUG_CHARS_MAX:
        fields.refuse(name, f"must have at most {SLUG_CHARS_MAX} characters as a slug")
    return slug

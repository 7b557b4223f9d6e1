"""Slugs: the part of an address that names an event, a market or a category.

Many spellings give one slug, so that two things whose names look alike cannot both have theirs.
"""

import re
import unicodedata
from typing import Final

SLUG_CHARS_MAX: Final = 128

_OTHERS: Final = re.compile(r"[^a-z0-9]+")
_LETTERS: Final = str.maketrans(
    {
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ħ": "h",
        "\u0131": "i",
    }
)
"""Latin letters that have no accent to take away, and still an ASCII spelling."""


def normalize_slug(text: str) -> str:
    """Return the slug of a text: lower-case ASCII letters and digits, words joined by hyphens.

    It is empty when the text has no such letter or digit. A slug's slug is itself.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    letters = "".join(char for char in folded if not unicodedata.combining(char))
    return _OTHERS.sub("-", letters.translate(_LETTERS)).strip("-")


def market_slug(event_slug: str, option_slug: str | None = None) -> str:
    """Return a market's slug: the event's, and the option's where the event has several markets."""
    return event_slug if option_slug is None else f"{event_slug}-{option_slug}"

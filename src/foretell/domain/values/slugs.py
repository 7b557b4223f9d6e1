"""Slugs: the part of a URL that names an event, a market or a category.

Names that look alike have the same slug, so that at most one of them can be used.
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
"""Latin letters with an ASCII spelling that no accent removal gives."""


def normalize_slug(text: str) -> str:
    """Return the slug of a text: lower-case ASCII letters and digits, words joined by hyphens.

    It is empty when the text has no such letter or digit. The slug of a slug is itself.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    letters = "".join(char for char in folded if not unicodedata.combining(char))
    return _OTHERS.sub("-", letters.translate(_LETTERS)).strip("-")


def market_slug(event_slug: str, option_slug: str | None = None) -> str:
    """Return a market's slug: the event's slug, then the option's where the event has several markets."""
    return event_slug if option_slug is None else f"{event_slug}-{option_slug}"

"""Texts without regard to accents and capitals: databases fold letters differently, so they are folded here."""

import unicodedata


def folded(text: str) -> str:
    """Return the text in lower case, without the marks of its letters."""
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in spread if not unicodedata.combining(char))

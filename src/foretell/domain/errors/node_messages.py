"""Redaction of a node's messages before they reach clients, tables and logs.

A node's message may quote its own URL, an API key or a billed project. So addresses and tokens are
removed where a message enters the process. What explains a refusal stays: reasons, names of errors,
numbers, and hex with its prefix.
"""

import re
from typing import Final

WORDS_CHARS_MAX: Final = 500
READ_CHARS_MAX: Final = 20 * WORDS_CHARS_MAX

_URL: Final = re.compile(r"(?<![\w.+-])[\w.+-]*:\\*/\\*/[^\s\"'<>`]*", re.ASCII)
_TOKEN: Final = re.compile(
    r"(?<![\w-])(?!(?:0x[0-9a-f]*|ERC\d+[a-z]*)(?![\w-]))(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{20,}",
    re.ASCII | re.IGNORECASE,
)
"""Long words of letters and digits: a key or an id."""


def redacted(text: str) -> str:
    """Return a node's message on one line, shortened, without addresses and tokens."""
    line = "".join(sign if sign.isprintable() else " " for sign in text[:READ_CHARS_MAX])
    return _TOKEN.sub("(token)", _URL.sub("(address)", line))[:WORDS_CHARS_MAX]

"""What a node says, made fit for clients, records and logs.

A node's words may quote its own address, or the key and the project that it bills, and go where
everybody reads them. So they are cleaned where they come in, and nobody sees them as they were.
What explains a refusal stays: reasons, names of errors, numbers, and what is hex and begins so.
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
"""Letters and digits that nobody would say: a key or an id."""


def told(text: str) -> str:
    """Return a node's words on one line, shortened, with nothing that leads to the node."""
    line = "".join(sign if sign.isprintable() else " " for sign in text[:READ_CHARS_MAX])
    return _TOKEN.sub("(token)", _URL.sub("(address)", line))[:WORDS_CHARS_MAX]

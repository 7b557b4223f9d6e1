"""The token that lets a browser use the sandbox's wallets, kept in the data folder.

`foretell up` prints a link with it, in the fragment, which a browser sends to no server.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from foretell.runtime.files import write_atomically

FILE: Final = "web-token"
TOKEN_CHARS: Final = 64


def kept_token(folder: Path, new_key: Callable[[], bytes]) -> str:
    """Return the folder's token, made at the first call; only its owner can read the file."""
    path = folder / FILE
    if path.is_file():
        token = path.read_text()
        if len(token) == TOKEN_CHARS:
            return token
    token = new_key().hex()
    write_atomically(path, token.encode())
    return token

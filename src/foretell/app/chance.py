"""The clock and chance, handed out to everything that needs them."""

import secrets
import time
import uuid

from foretell.domain.hexadecimal import Bytes32, word_of


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_uuid() -> str:
    """Return an id that nobody can guess."""
    return str(uuid.uuid4())


def new_word() -> Bytes32:
    """Return 32 bytes that nobody can guess, as hex."""
    return word_of(secrets.token_bytes(32))


def new_key() -> bytes:
    """Return 32 bytes that nobody can guess."""
    return secrets.token_bytes(32)

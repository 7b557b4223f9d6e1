"""The clock and chance, handed out to everything that needs them."""

import itertools
import secrets
import time
import uuid
from collections.abc import Callable

from foretell.domain.values.hexadecimal import Bytes32, word_of


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_uuid() -> str:
    """Return an id that nobody can guess."""
    return str(uuid.uuid4())


def numbered_ids() -> Callable[[], str]:
    """Return a maker of ids that no other one makes; who knows one can guess the next."""
    start = secrets.token_hex(8)
    numbers = itertools.count(1)
    return lambda: f"{start}{next(numbers):016x}"


def new_word() -> Bytes32:
    """Return 32 bytes that nobody can guess, as hex."""
    return word_of(secrets.token_bytes(32))


def new_key() -> bytes:
    """Return 32 bytes that nobody can guess."""
    return secrets.token_bytes(32)

"""The clock, random ids and random keys, passed to everything that needs them."""

import itertools
import secrets
import time
import uuid
from collections.abc import Callable

from foretell.domain.values.hexadecimal import Bytes32, word_of


def now_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Return milliseconds that never run backwards, for the time between two events of a process."""
    return time.monotonic_ns() // 1_000_000


def new_uuid() -> str:
    """Return an id that cannot be guessed."""
    return str(uuid.uuid4())


def numbered_ids() -> Callable[[], str]:
    """Return a maker of unique ids with a counter: from one the next can be guessed."""
    start = secrets.token_hex(8)
    numbers = itertools.count(1)
    return lambda: f"{start}{next(numbers):016x}"


def new_word() -> Bytes32:
    """Return 32 bytes that cannot be guessed, as hex."""
    return word_of(secrets.token_bytes(32))


def new_key() -> bytes:
    """Return 32 bytes that cannot be guessed."""
    return secrets.token_bytes(32)

"""What a disk may do to a file, at random places."""

import random
from collections.abc import Callable

SECTOR_BYTES = 512

Damage = Callable[[random.Random, bytes], bytes]


def flip(chance: random.Random, raw: bytes) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]


def scribble(chance: random.Random, raw: bytes) -> bytes:
    at, count = chance.randrange(len(raw)), chance.randrange(1, 64)
    return (raw[:at] + chance.randbytes(count) + raw[at + count :])[: len(raw)]


def blank(chance: random.Random, raw: bytes) -> bytes:
    at, count = chance.randrange(len(raw)), chance.randrange(1, 2_000)
    return (raw[:at] + bytes(count) + raw[at + count :])[: len(raw)]


def truncate(chance: random.Random, raw: bytes) -> bytes:
    return raw[: chance.randrange(len(raw))]


def misplace(chance: random.Random, raw: bytes) -> bytes:
    at, source, count = (chance.randrange(len(raw)) for _ in range(3))
    return (raw[:at] + raw[source : source + count] + raw[at + count :])[: len(raw)].ljust(
        len(raw), b"\x00"
    )


def drop(chance: random.Random, raw: bytes) -> bytes:
    at, count = chance.randrange(len(raw)), chance.randrange(1, 600)
    return (raw[:at] + raw[at + count :]).ljust(len(raw), b"\x00")


def repeat(chance: random.Random, raw: bytes) -> bytes:
    at, count = chance.randrange(len(raw)), chance.randrange(1, 600)
    return (raw[: at + count] + raw[at:])[: len(raw)]


KINDS: list[Damage] = [flip, scribble, blank, truncate, misplace, drop, repeat]

"""Damages that a disk may do to a file, at random places."""

import random
from collections.abc import Callable

SECTOR_BYTES = 512

Damage = Callable[[random.Random, bytes], bytes]


def flip(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]


def scribble(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 64)
    return (raw[:at] + rng.randbytes(count) + raw[at + count :])[: len(raw)]


def zero(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 2_000)
    return (raw[:at] + bytes(count) + raw[at + count :])[: len(raw)]


def truncate(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def misplace(rng: random.Random, raw: bytes) -> bytes:
    at, source, count = (rng.randrange(len(raw)) for _ in range(3))
    return (raw[:at] + raw[source : source + count] + raw[at + count :])[: len(raw)].ljust(
        len(raw), b"\x00"
    )


def drop(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 600)
    return (raw[:at] + raw[at + count :]).ljust(len(raw), b"\x00")


def repeat(rng: random.Random, raw: bytes) -> bytes:
    at, count = rng.randrange(len(raw)), rng.randrange(1, 600)
    return (raw[: at + count] + raw[at:])[: len(raw)]


KINDS: list[Damage] = [flip, scribble, zero, truncate, misplace, drop, repeat]

"""Limits and values of payloads that journals in files and in a database share.

Each payload, or a group of them, has a chain: a hash of it and of the chain before. It belongs to
one place in one journal.
"""

import hashlib
import os
from typing import Final, NamedTuple

ALIGNMENT: Final = 8
SECTOR_BYTES: Final = 512
"""The bytes that a disk writes as a whole or not at all."""
CHAIN_BYTES: Final = 16
CHAIN_START: Final = bytes(CHAIN_BYTES)
PAYLOAD_BYTES_MAX: Final = 8 * 1024 * 1024
IDENTITY_BYTES: Final = 16


def new_identity() -> str:
    """Return an id for a new journal, which no other one has."""
    return os.urandom(IDENTITY_BYTES).hex()


def next_chain(chain: bytes, payload: bytes) -> bytes:
    """Return the chain value of a payload that follows this chain, where each payload has one."""
    return hashlib.blake2b(chain + payload, digest_size=CHAIN_BYTES).digest()


def payload_digest(payload: bytes) -> bytes:
    """Return what stands for a payload outside of its journal.

    A payload holds its time, so two copies of a journal that went on apart do not have the same one at one sequence.
    """
    return hashlib.blake2b(payload, digest_size=CHAIN_BYTES).digest()


class Run(NamedTuple):
    """The payloads of consecutive records, and what the next record must follow.

    `proven_end` is the offset up to which the records that follow prove a sync; 0 if that is not known.
    """

    payloads: list[bytes]
    sequence: int
    chain: bytes
    end: int
    proven_end: int = 0

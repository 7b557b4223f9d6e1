"""The bloom filter of a block header, over the addresses and topics of the block's logs.

It has 2048 bits; each logged address and topic sets three. An excluded value was not logged in the
block; any other value may have been.
"""

from collections.abc import Sequence
from typing import Final

from foretell.domain.values.hexadecimal import keccak256

BLOOM_BYTES: Final = 256

_BIT_MASK: Final = BLOOM_BYTES * 8 - 1


def bloom_bits(part: bytes) -> int:
    """Return the three bits that an address or a topic sets, as a number of 2048 bits."""
    digest = keccak256(part)
    bits = 0
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") & _BIT_MASK)
    return bits


class BloomQuery:
    """A query for logs of some contracts with some topics."""

    def __init__(self, addresses: Sequence[bytes], topics: Sequence[bytes]) -> None:
        self._addresses = [bloom_bits(address) for address in addresses]
        self._topics = [bloom_bits(topic) for topic in topics]

    def may_be_in(self, bloom: bytes) -> bool:
        """Return False when none of the contracts logged any of the topics in the block."""
        filled = int.from_bytes(bloom, "big")
        return any(filled & bits == bits for bits in self._addresses) and any(
            filled & bits == bits for bits in self._topics
        )

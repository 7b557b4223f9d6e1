"""The words of a log, read by hand: a generic decoder is seven times slower.

What is not spelt as an honest contract spells it raises ValueError, which the decoder of logs
turns into "not a log of ours".
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.values.hexadecimal import Address, Bytes32

WORD: Final = 32

_ADDRESS_PADDING: Final = bytes(12)


class LogWords(NamedTuple):
    """A log's indexed words, the first of which names it, and its data."""

    topics: tuple[bytes, ...]
    data: bytes

    def word(self, index: int) -> bytes:
        """Return a word of the data."""
        return self.data[index * WORD : (index + 1) * WORD]

    def integer(self, index: int) -> int:
        """Return an unsigned integer of the data."""
        return int.from_bytes(self.data[index * WORD : (index + 1) * WORD], "big")

    def integers(self, index: int, place: int) -> tuple[int, ...]:
        """Return the list of integers that the word points to, which must lie at this place."""
        start, length = self._tail(index, place, WORD)
        return tuple(
            int.from_bytes(self.data[at : at + WORD], "big")
            for at in range(start, start + length * WORD, WORD)
        )

    def text(self, index: int, place: int) -> bytes:
        """Return the bytes that the word points to, which must lie at this place."""
        start, length = self._tail(index, place, 1)
        end = start + length
        if any(self.data[end : end + -length % WORD]):
            raise ValueError("bits after the text")
        return self.data[start:end]

    def check_size(self, size: int) -> None:
        """Raise when the data is shorter or longer than it should be."""
        if len(self.data) != size:
            raise ValueError("wrong length")

    def _tail(self, index: int, place: int, part_bytes: int) -> tuple[int, int]:
        """Return where a list starts and how many parts it has; all of it must be there."""
        if self.integer(index) != place * WORD:
            raise ValueError("a list out of place")
        start = (place + 1) * WORD
        length = self.integer(place)
        if start + length * part_bytes > len(self.data):
            raise ValueError("a list longer than the data")
        return start, length


def parse_words(topics: Sequence[str], data: str) -> LogWords:
    """Return the words of a log as a node writes it."""
    words = tuple(bytes.fromhex(topic[2:]) for topic in topics)
    if any(len(word) != WORD for word in words):
        raise ValueError("a topic that is no word")
    return LogWords(words, bytes.fromhex(data[2:]))


def address_in(word: bytes) -> Address:
    """Return the address that a word holds."""
    if word[:12] != _ADDRESS_PADDING:
        raise ValueError("no address")
    return Address("0x" + word[12:].hex())


def bytes32_in(word: bytes) -> Bytes32:
    """Return the word as text."""
    return Bytes32("0x" + word.hex())


def integer_in(word: bytes) -> int:
    """Return the unsigned integer that a word holds."""
    return int.from_bytes(word, "big")


def signed_in(word: bytes) -> int:
    """Return the signed integer that a word holds."""
    return int.from_bytes(word, "big", signed=True)

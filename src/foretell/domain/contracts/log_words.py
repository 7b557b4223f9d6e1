"""The 32-byte words of a log, decoded by hand: a generic decoder is seven times slower.

An encoding that no compiler emits raises ValueError, which the log decoder treats as no match.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.values.hexadecimal import Address, Bytes32

WORD: Final = 32

_ADDRESS_PADDING: Final = bytes(12)


class LogWords(NamedTuple):
    """A log's topics, the first of which is the hash of its signature, and its data."""

    topics: tuple[bytes, ...]
    data: bytes

    def word(self, index: int) -> bytes:
        """Return a word of the data."""
        return self.data[index * WORD : (index + 1) * WORD]

    def integer(self, index: int) -> int:
        """Return an unsigned integer of the data."""
        return int.from_bytes(self.data[index * WORD : (index + 1) * WORD], "big")

    def integers(self, index: int, at_word: int) -> tuple[int, ...]:
        """Return the list of integers that the word points to, which must start at this word."""
        start, length = self._tail(index, at_word, WORD)
        return tuple(
            int.from_bytes(self.data[at : at + WORD], "big")
            for at in range(start, start + length * WORD, WORD)
        )

    def text(self, index: int, at_word: int) -> bytes:
        """Return the bytes that the word points to, which must start at this word."""
        start, length = self._tail(index, at_word, 1)
        end = start + length
        if any(self.data[end : end + -length % WORD]):
            raise ValueError("bits after the text")
        return self.data[start:end]

    def check_size(self, size: int) -> None:
        """Refuse data of another size."""
        if len(self.data) != size:
            raise ValueError("wrong length")

    def _tail(self, index: int, at_word: int, part_bytes: int) -> tuple[int, int]:
        """Return the start and the length of a list; refuses one that exceeds the data."""
        if self.integer(index) != at_word * WORD:
            raise ValueError("a list at another word")
        start = (at_word + 1) * WORD
        length = self.integer(at_word)
        if start + length * part_bytes > len(self.data):
            raise ValueError("a list longer than the data")
        return start, length


def parse_words(topics: Sequence[str], data: str) -> LogWords:
    """Return the words of a log in a node's hex text."""
    digits = [topic[2:] for topic in topics]
    if any([len(each) != 2 * WORD for each in digits]):  # noqa: C419 - a list is faster here
        raise ValueError("a topic of another length")
    raw = bytes.fromhex("".join(digits))
    words = tuple([raw[at : at + WORD] for at in range(0, len(raw), WORD)])
    return LogWords(words, bytes.fromhex(data[2:]))


def address_in(word: bytes) -> Address:
    """Return the address in a word."""
    if word[:12] != _ADDRESS_PADDING:
        raise ValueError("not an address")
    return Address("0x" + word[12:].hex())


def bytes32_in(word: bytes) -> Bytes32:
    """Return the word as hex text."""
    return Bytes32("0x" + word.hex())


def integer_in(word: bytes) -> int:
    """Return the unsigned integer in a word."""
    return int.from_bytes(word, "big")


def signed_in(word: bytes) -> int:
    """Return the signed integer in a word."""
    return int.from_bytes(word, "big", signed=True)

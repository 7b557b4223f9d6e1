"""The 32-byte words of a log, decoded by hand: a generic decoder is seven times slower.

An encoding that no compiler emits raises ValueError, which the log decoder treats as no match.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from foretell.domain.values.hexadecimal import Address, Bytes32

WORD: Final = 32

Topics = Sequence[str]
"""The topics of a log as a node's hex text."""
Words = tuple[bytes, ...]
"""The words of a log's data."""
ADDRESSES_KEPT_MAX: Final = 16_384
TOKENS_KEPT_MAX: Final = 8_192
"""The same accounts and tokens are in most logs, so those read last are kept, and their text exists once."""

_ADDRESS_PADDING: Final = bytes(12)


class LogWords(NamedTuple):
    """The data of a log."""

    data: bytes

    def word(self, index: int) -> bytes:
        """Return a word of the data."""
        return self.data[index * WORD : (index + 1) * WORD]

    def integer(self, index: int) -> int:
        """Return an unsigned integer of the data."""
        return int.from_bytes(self.data[index * WORD : (index + 1) * WORD])

    def words(self, index: int, at_word: int) -> Words:
        """Return the list of words that the word points to, which must start at this word."""
        start, length = self._tail(index, at_word, WORD)
        data = self.data
        return tuple([data[at : at + WORD] for at in range(start, start + length * WORD, WORD)])

    def integers(self, index: int, at_word: int) -> tuple[int, ...]:
        """Return the list of integers that the word points to, which must start at this word."""
        return tuple(map(int.from_bytes, self.words(index, at_word)))

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


def address_in(word: bytes) -> Address:
    """Return the address in a word."""
    if word[:12] != _ADDRESS_PADDING:
        raise ValueError("not an address")
    return Address("0x" + word[12:].hex())


class _AddressByTopic(dict[str, Address]):
    """The addresses read last; emptied when full, because a cache that keeps the order of use takes longer to ask."""

    def __missing__(self, topic: str) -> Address:
        address = address_in(_topic_bytes(topic))
        if len(self) >= ADDRESSES_KEPT_MAX:
            self.clear()
        self[topic] = address
        return address


topic_address: Final[Callable[[str], Address]] = _AddressByTopic().__getitem__
"""Return the address in a topic."""


def bytes32_in(word: bytes) -> Bytes32:
    """Return the word as hex text."""
    return Bytes32("0x" + word.hex())


def topic_bytes32(topic: str) -> Bytes32:
    """Return the topic in lower case."""
    raw = bytes.fromhex(topic[2:])
    if len(raw) != WORD:
        raise ValueError("a topic of another length")
    return "0x" + raw.hex()  # type: ignore[return-value]  # calling the new type takes as long as the rest


integer_in: Final[Callable[[bytes], int]] = int.from_bytes
"""Return the unsigned integer in a word; it has no function of its own, as it is called for most words."""


def topic_integer(topic: str) -> int:
    """Return the unsigned integer in a topic."""
    return int.from_bytes(_topic_bytes(topic))


class _TokenByWord(dict[bytes, str]):
    """The token ids read last, kept like the addresses."""

    def __missing__(self, word: bytes) -> str:
        token = str(int.from_bytes(word))
        if len(self) >= TOKENS_KEPT_MAX:
            self.clear()
        self[word] = token
        return token


token_in: Final[Callable[[bytes], str]] = _TokenByWord().__getitem__
"""Return the token id in a word."""


def signed_in(word: bytes) -> int:
    """Return the signed integer in a word."""
    return int.from_bytes(word, signed=True)


def topic_signed(topic: str) -> int:
    """Return the signed integer in a topic."""
    return signed_in(_topic_bytes(topic))


def one_of(value: int, count: int) -> int:
    """Return a number below this count, or refuse it."""
    if value >= count:
        raise ValueError("no such value")
    return value


def _topic_bytes(topic: str) -> bytes:
    raw = bytes.fromhex(topic[2:])
    if len(raw) != WORD:
        raise ValueError("a topic of another length")
    return raw

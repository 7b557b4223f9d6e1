"""Schemas of the contracts' logs, by their first topic."""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from foretell.domain.contracts.log_words import WORD, LogWords, Topics, Words
from foretell.domain.contracts.logs import ChainLog
from foretell.domain.values.hexadecimal import keccak256


class LogSchema(Protocol):
    """The shape of a log."""

    def read(self, topics: Topics, data: str) -> ChainLog:
        """Return the log in a node's hex text; raise ValueError when it has another shape."""
        ...


class FixedSchema:
    """A log of so many topics, including the first, and so many data words.

    The decoder gets all topics as text and the words as bytes. It must read each topic but the first, which
    refuses those of another length.
    """

    __slots__ = ("_data_length", "_decode", "_split", "_topics")

    def __init__(
        self,
        topics: int,
        words: int,
        decode: Callable[[Topics, Words], ChainLog],
    ) -> None:
        self._topics = topics
        self._data_length = 2 + words * WORD * 2
        self._split = struct.Struct(f"{WORD}s" * words).unpack
        self._decode = decode

    def read(self, topics: Topics, data: str) -> ChainLog:
        """Return the log in a node's hex text; raise ValueError when it has another shape."""
        if len(topics) != self._topics or len(data) != self._data_length:
            raise ValueError("topics or data of another length")
        try:
            words = self._split(bytes.fromhex(data[2:]))
        except struct.error as error:
            raise ValueError("blanks in the data") from error
        return self._decode(topics, words)


class ListSchema:
    """A log of so many topics, including the first, and data with lists; the decoder checks its length.

    It must read each topic but the first.
    """

    __slots__ = ("_decode", "_topics")

    def __init__(self, topics: int, decode: Callable[[Topics, LogWords], ChainLog]) -> None:
        self._topics = topics
        self._decode = decode

    def read(self, topics: Topics, data: str) -> ChainLog:
        """Return the log in a node's hex text; raise ValueError when it has another shape."""
        if len(topics) != self._topics:
            raise ValueError("another number of topics")
        return self._decode(topics, LogWords(bytes.fromhex(data[2:])))


def by_topic(schema_by_signature: Mapping[str, LogSchema]) -> Mapping[str, LogSchema]:
    """Return the schemas by first topic, the hash of the signature, as lower-case text."""
    return MappingProxyType(
        {
            f"0x{keccak256(name.encode()).hex()}": schema
            for name, schema in schema_by_signature.items()
        }
    )

"""Schemas of the contracts' logs, by their first topic."""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from foretell.domain.contracts.log_words import WORD, LogWords, Topics, Words
from foretell.domain.contracts.logs import ChainLog
from foretell.domain.values.hexadecimal import keccak256

LogSchema = Callable[[Topics, str], ChainLog]
"""Returns the log in a node's hex text: its topics, the first of which is known, and its data.

Raises ValueError when it has another shape.
"""


def fixed_schema(topics: int, words: int, decode: Callable[[Topics, Words], ChainLog]) -> LogSchema:
    """Return the schema of a log of so many topics, including the first, and so many data words.

    The decoder gets all topics as text and the words as bytes. It must read each topic but the first, which
    refuses those of another length.
    """
    digits = 2 + words * WORD * 2
    split, to_bytes = struct.Struct(f"{WORD}s" * words).unpack, bytes.fromhex

    def read(found: Topics, data: str) -> ChainLog:
        if len(found) != topics or len(data) != digits:
            raise ValueError("topics or data of another length")
        try:
            return decode(found, split(to_bytes(data[2:])))
        except struct.error as error:
            raise ValueError("blanks in the data") from error

    return read


def list_schema(topics: int, decode: Callable[[Topics, LogWords], ChainLog]) -> LogSchema:
    """Return the schema of a log of so many topics, including the first, and data with lists.

    The decoder must read each topic but the first, and checks the length of the data.
    """

    def read(found: Topics, data: str) -> ChainLog:
        if len(found) != topics:
            raise ValueError("another number of topics")
        return decode(found, LogWords(bytes.fromhex(data[2:])))

    return read


def by_topic(schema_by_signature: Mapping[str, LogSchema]) -> Mapping[str, LogSchema]:
    """Return the schemas by first topic, the hash of the signature, as lower-case text."""
    return MappingProxyType(
        {
            f"0x{keccak256(name.encode()).hex()}": schema
            for name, schema in schema_by_signature.items()
        }
    )

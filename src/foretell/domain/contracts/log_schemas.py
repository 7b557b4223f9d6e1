"""Schemas of the contracts' logs, by their first topic."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from foretell.domain.contracts.log_words import LogWords
from foretell.domain.contracts.logs import ChainLog
from foretell.domain.values.hexadecimal import keccak256


class LogSchema(NamedTuple):
    """The number of topics including the first, the number of data words, and the decoder.

    `words` is None for data with lists; the decoder checks its length.
    """

    topics: int
    words: int | None
    decode: Callable[[LogWords], ChainLog]


def by_topic(schema_by_signature: Mapping[str, LogSchema]) -> Mapping[bytes, LogSchema]:
    """Return the schemas by first topic, the hash of the signature."""
    return MappingProxyType(
        {keccak256(name.encode()): schema for name, schema in schema_by_signature.items()}
    )

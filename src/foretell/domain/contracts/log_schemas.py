"""How a contract's logs are spelt, by their names."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from foretell.domain.contracts.log_words import LogWords
from foretell.domain.contracts.logs import ChainLog
from foretell.domain.values.hexadecimal import keccak256


class Shape(NamedTuple):
    """How a log is spelt: its topics with the name, the words of its data, and what reads it.

    `words` None is for data whose length its lists decide; the reader checks that itself.
    """

    topics: int
    words: int | None
    read: Callable[[LogWords], ChainLog]


def named(shape_by_signature: Mapping[str, Shape]) -> Mapping[bytes, Shape]:
    """Return the shapes by the topic that names each."""
    return MappingProxyType(
        {keccak256(name.encode()): shape for name, shape in shape_by_signature.items()}
    )

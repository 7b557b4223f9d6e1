"""The logs of the optimistic oracle: answers that are proposed, and those that are disputed."""

from collections.abc import Callable
from typing import Final

from foretell.domain.values.hexadecimal import keccak256
from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.fetched_logs import (
    WORD_BYTES,
    FetchedLog,
    address_in,
    topic_of,
    word_text,
)

TEXT_PLACE: Final = 2
PRICE_PLACE: Final = 3
SIGN_BIT: Final = 1 << 255

Reading = Callable[[ChainFigures, FetchedLog, int], None]


def read_answer(figures: ChainFigures, kind: str, log: FetchedLog, at_s: int) -> None:
    """Apply a log of a contract of this kind; those of no interest are passed over."""
    reading = _READINGS.get((kind, log.topics[0] if log.topics else 0))
    if reading is not None:
        reading(figures, log, at_s)


def _proposed(figures: ChainFigures, log: FetchedLog, at_s: int) -> None:
    _add(figures, log, at_s, ("proposed", address_in(log.topics[2])))


def _disputed(figures: ChainFigures, log: FetchedLog, at_s: int) -> None:
    _add(figures, log, at_s, ("disputed", address_in(log.topics[3])))


def _add(figures: ChainFigures, log: FetchedLog, at_s: int, step: tuple[str, str]) -> None:
    """Add a step by an account, with the question's id: the hash of its text."""
    adapter, question = address_in(log.topics[1]), keccak256(_text(log))
    word = log.words[PRICE_PLACE]
    price = word - (1 << 256) if word & SIGN_BIT else word
    figures.answers[log.block_number, log.log_index] = (
        *(adapter, word_text(int.from_bytes(question)), *step),
        *(str(price), at_s, log.tx_hash),
    )


def _text(log: FetchedLog) -> bytes:
    """Return the text of the question, which fills its last word with zeros."""
    start = log.words[TEXT_PLACE] // WORD_BYTES
    length = log.words[start]
    words = log.words[start + 1 :]
    if length > WORD_BYTES * len(words):
        raise ValueError("a text longer than the log")
    return b"".join(word.to_bytes(WORD_BYTES) for word in words)[:length]


_READINGS: Final[dict[tuple[str, int], Reading]] = {
    ("oracle", topic_of(signature)): reading
    for signature, reading in (
        (
            "ProposePrice(address,address,bytes32,uint256,bytes,int256,uint256,address)",
            _proposed,
        ),
        ("DisputePrice(address,address,address,bytes32,uint256,bytes,int256)", _disputed),
    )
}
"""Readings by the kind of a contract and the first topic."""

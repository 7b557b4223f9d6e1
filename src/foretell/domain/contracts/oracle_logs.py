"""Schemas of the optimistic oracle's logs: proposed and disputed answers."""

from collections.abc import Mapping
from typing import Final

from foretell.domain.contracts.log_schemas import LogSchema, by_topic, list_schema
from foretell.domain.contracts.log_words import WORD, LogWords, Topics, signed_in, topic_address
from foretell.domain.contracts.logs import AnswerDisputed, AnswerProposed, ChainLog
from foretell.domain.values.hexadecimal import Bytes32, keccak256, word_of


def _proposed(topics: Topics, words: LogWords) -> ChainLog:
    _, requester, proposer = topics
    question = _question(words, fixed_words=6)
    price, expires_at_s = signed_in(words.word(3)), words.integer(4)
    return AnswerProposed(
        topic_address(requester), question, topic_address(proposer), price, expires_at_s
    )


def _disputed(topics: Topics, words: LogWords) -> ChainLog:
    _, requester, _, disputer = topics
    question = _question(words, fixed_words=4)
    return AnswerDisputed(
        topic_address(requester), question, topic_address(disputer), signed_in(words.word(3))
    )


def _question(words: LogWords, fixed_words: int) -> Bytes32:
    """Return the adapter's id of the question: the hash of its text."""
    text = words.text(2, fixed_words)
    words.check_size((fixed_words + 1 - -len(text) // WORD) * WORD)
    return word_of(keccak256(text))


SCHEMAS: Final[Mapping[str, LogSchema]] = by_topic(
    {
        "ProposePrice(address,address,bytes32,uint256,bytes,int256,uint256,address)": list_schema(
            3, _proposed
        ),
        "DisputePrice(address,address,address,bytes32,uint256,bytes,int256)": list_schema(
            4, _disputed
        ),
    }
)

"""Schemas of the neg-risk adapter's logs: splits, merges, redemptions and conversions in events."""

from collections.abc import Mapping
from typing import Final

from foretell.domain.contracts.log_schemas import LogSchema, by_topic, fixed_schema, list_schema
from foretell.domain.contracts.log_words import (
    WORD,
    LogWords,
    Topics,
    Words,
    integer_in,
    topic_address,
    topic_bytes32,
    topic_integer,
)
from foretell.domain.contracts.logs import (
    ChainLog,
    EventPayoutRedeemed,
    EventSetsMerged,
    EventSetsSplit,
    PositionsConverted,
)
from foretell.domain.values.tokens import OUTCOME_SLOTS


def _sets_split(topics: Topics, words: Words) -> ChainLog:
    _, holder, condition = topics
    (units,) = words
    return EventSetsSplit(topic_address(holder), topic_bytes32(condition), integer_in(units))


def _sets_merged(topics: Topics, words: Words) -> ChainLog:
    _, holder, condition = topics
    (units,) = words
    return EventSetsMerged(topic_address(holder), topic_bytes32(condition), integer_in(units))


def _payout_redeemed(topics: Topics, words: LogWords) -> ChainLog:
    _, holder, condition = topics
    amounts = words.integers(0, 2)
    words.check_size((3 + len(amounts)) * WORD)
    if len(amounts) != OUTCOME_SLOTS:
        raise ValueError("not an amount for each outcome")
    yes_units, no_units = amounts
    return EventPayoutRedeemed(
        topic_address(holder), topic_bytes32(condition), (yes_units, no_units), words.integer(1)
    )


def _positions_converted(topics: Topics, words: Words) -> ChainLog:
    _, holder, market, index_set = topics
    (units,) = words
    return PositionsConverted(
        topic_address(holder), topic_bytes32(market), topic_integer(index_set), integer_in(units)
    )


SCHEMAS: Final[Mapping[str, LogSchema]] = by_topic(
    {
        "PositionSplit(address,bytes32,uint256)": fixed_schema(3, 1, _sets_split),
        "PositionsMerge(address,bytes32,uint256)": fixed_schema(3, 1, _sets_merged),
        "PayoutRedemption(address,bytes32,uint256[],uint256)": list_schema(3, _payout_redeemed),
        "PositionsConverted(address,bytes32,uint256,uint256)": fixed_schema(
            4, 1, _positions_converted
        ),
    }
)

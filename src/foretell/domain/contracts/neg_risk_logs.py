"""Schemas of the neg-risk adapter's logs: splits, merges, redemptions and conversions in events."""

from collections.abc import Mapping
from typing import Final

from foretell.domain.contracts.log_schemas import LogSchema, by_topic
from foretell.domain.contracts.log_words import WORD, LogWords, address_in, bytes32_in, integer_in
from foretell.domain.contracts.logs import (
    ChainLog,
    EventPayoutRedeemed,
    EventSetsMerged,
    EventSetsSplit,
    PositionsConverted,
)
from foretell.domain.values.tokens import OUTCOME_SLOTS


def _sets_split(words: LogWords) -> ChainLog:
    _, holder, condition = words.topics
    return EventSetsSplit(address_in(holder), bytes32_in(condition), words.integer(0))


def _sets_merged(words: LogWords) -> ChainLog:
    _, holder, condition = words.topics
    return EventSetsMerged(address_in(holder), bytes32_in(condition), words.integer(0))


def _payout_redeemed(words: LogWords) -> ChainLog:
    _, holder, condition = words.topics
    amounts = words.integers(0, 2)
    words.check_size((3 + len(amounts)) * WORD)
    if len(amounts) != OUTCOME_SLOTS:
        raise ValueError("not an amount for each outcome")
    yes_units, no_units = amounts
    return EventPayoutRedeemed(
        address_in(holder), bytes32_in(condition), (yes_units, no_units), words.integer(1)
    )


def _positions_converted(words: LogWords) -> ChainLog:
    _, holder, market, index_set = words.topics
    return PositionsConverted(
        address_in(holder), bytes32_in(market), integer_in(index_set), words.integer(0)
    )


SCHEMAS: Final[Mapping[bytes, LogSchema]] = by_topic(
    {
        "PositionSplit(address,bytes32,uint256)": LogSchema(3, 1, _sets_split),
        "PositionsMerge(address,bytes32,uint256)": LogSchema(3, 1, _sets_merged),
        "PayoutRedemption(address,bytes32,uint256[],uint256)": LogSchema(3, None, _payout_redeemed),
        "PositionsConverted(address,bytes32,uint256,uint256)": LogSchema(
            4, 1, _positions_converted
        ),
    }
)

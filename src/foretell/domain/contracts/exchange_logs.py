"""Schemas of the exchange's logs: fills, fees and cancellations."""

from collections.abc import Mapping
from typing import Final

from foretell.domain.contracts import logs
from foretell.domain.contracts.log_schemas import LogSchema, by_topic, fixed_schema
from foretell.domain.contracts.log_words import (
    WORD,
    Topics,
    Words,
    bytes32_in,
    integer_in,
    one_of,
    token_in,
    topic_address,
    topic_bytes32,
    topic_integer,
)
from foretell.domain.contracts.logs import ChainLog
from foretell.domain.exchange.order import Side

_BUY: Final = Side.BUY
_SELL: Final = Side.SELL
_COLLATERAL: Final = bytes(WORD)
"""The asset of a v1 log that is collateral."""

Terms = tuple[Side, str, int, int]
"""The side and the token of a trade, its size and its cost."""


def _order_filled_v1(topics: Topics, words: Words) -> ChainLog:
    _, order, maker, counterparty = topics
    *traded, fee = words
    return logs.OrderFilledLog(
        topic_bytes32(order),
        topic_address(maker),
        topic_address(counterparty),
        *_terms_v1(*traded),
        integer_in(fee),
    )


def _order_filled_v2(topics: Topics, words: Words) -> ChainLog:
    _, order, maker, counterparty = topics
    *traded, fee, builder, _ = words
    return logs.OrderFilledLog(
        topic_bytes32(order),
        topic_address(maker),
        topic_address(counterparty),
        *_terms_v2(*traded),
        integer_in(fee),
        bytes32_in(builder),
    )


def _orders_matched_v1(topics: Topics, words: Words) -> ChainLog:
    _, order, maker = topics
    return logs.OrdersMatched(topic_bytes32(order), topic_address(maker), *_terms_v1(*words))


def _orders_matched_v2(topics: Topics, words: Words) -> ChainLog:
    _, order, maker = topics
    return logs.OrdersMatched(topic_bytes32(order), topic_address(maker), *_terms_v2(*words))


def _terms_v1(maker_asset: bytes, taker_asset: bytes, given: bytes, received: bytes) -> Terms:
    """Return the terms in a v1 log: exactly one of its assets is 0, the collateral."""
    is_sale = taker_asset == _COLLATERAL
    if is_sale is (maker_asset == _COLLATERAL):
        raise ValueError("not collateral against a token")
    if is_sale:
        return _SELL, token_in(maker_asset), integer_in(given), integer_in(received)
    return _BUY, token_in(taker_asset), integer_in(received), integer_in(given)


def _terms_v2(side: bytes, token: bytes, given: bytes, received: bytes) -> Terms:
    """Return the terms in a v2 log."""
    if one_of(integer_in(side), 2):
        return _SELL, token_in(token), integer_in(given), integer_in(received)
    return _BUY, token_in(token), integer_in(received), integer_in(given)


def _fee_charged(topics: Topics, words: Words) -> ChainLog:
    _, receiver = topics
    token, units = words
    return logs.FeeCharged(topic_address(receiver), token_in(token), integer_in(units))


def _fee_charged_v2(topics: Topics, words: Words) -> ChainLog:
    _, receiver = topics
    (units,) = words
    return logs.FeeCharged(topic_address(receiver), None, integer_in(units))


def _order_cancelled(topics: Topics, _words: Words) -> ChainLog:
    _, order = topics
    return logs.OrderCancelled(topic_bytes32(order))


def _nonce_incremented(topics: Topics, words: Words) -> ChainLog:
    _, maker = topics
    (nonce,) = words
    return logs.NonceIncremented(topic_address(maker), integer_in(nonce))


def _cancelled_before(topics: Topics, words: Words) -> ChainLog:
    _, maker = topics
    (timestamp,) = words
    return logs.OrdersCancelledBefore(topic_address(maker), integer_in(timestamp))


def _owner_signing_changed(topics: Topics, words: Words) -> ChainLog:
    _, safe = topics
    (is_allowed,) = words
    return logs.OwnerSigningChanged(topic_address(safe), one_of(integer_in(is_allowed), 2) == 1)


def _token_registered(topics: Topics, _words: Words) -> ChainLog:
    _, token, complement, condition = topics
    return logs.TokenRegistered(
        str(topic_integer(token)), str(topic_integer(complement)), topic_bytes32(condition)
    )


SCHEMAS: Final[Mapping[str, LogSchema]] = by_topic(
    {
        "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)": (
            fixed_schema(4, 5, _order_filled_v1)
        ),
        "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,"
        "bytes32,bytes32)": fixed_schema(4, 7, _order_filled_v2),
        "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)": fixed_schema(
            3, 4, _orders_matched_v1
        ),
        "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)": fixed_schema(
            3, 4, _orders_matched_v2
        ),
        "FeeCharged(address,uint256,uint256)": fixed_schema(2, 2, _fee_charged),
        "FeeCharged(address,uint256)": fixed_schema(2, 1, _fee_charged_v2),
        "OrderCancelled(bytes32)": fixed_schema(2, 0, _order_cancelled),
        "NonceIncremented(address,uint256)": fixed_schema(2, 1, _nonce_incremented),
        "OrdersCancelledBefore(address,uint256)": fixed_schema(2, 1, _cancelled_before),
        "OwnerSigningChanged(address,bool)": fixed_schema(2, 1, _owner_signing_changed),
        "TokenRegistered(uint256,uint256,bytes32)": fixed_schema(4, 0, _token_registered),
    }
)

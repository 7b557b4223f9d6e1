"""Books, prices, midpoints and spreads, from the durable books in memory.

Without a bid the best bid counts as 0, and without an ask the best ask as 1, so every token that
trades has a midpoint and a spread. A price that has no order is refused instead.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from foretell.domain.errors.exchange import UnknownMarket
from foretell.domain.errors.order import (
    BatchTooLong,
    BooksTooLarge,
    InvalidSide,
    InvalidTokenId,
    MalformedBatch,
    NeverTraded,
    NoPrice,
)
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.amounts import ratio_text, tick_text
from foretell.domain.values.tokens import is_token_id
from foretell.edge.codec import decode
from foretell.trading.books.books import (
    PriceSide,
    PublicBooks,
    TokenRef,
    bests,
    price_texts,
    spread_text,
)

TOKENS_PER_BATCH_MAX: Final = 500
BOOKS_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of all books of a batch: one answer to a client that may not read it."""


class TokenQuery(msgspec.Struct):
    """A token of a batch, and a side for routes that use it."""

    token_id: str
    side: str = ""


class PriceRecord(msgspec.Struct, frozen=True):
    """A price."""

    price: str


class MidpointRecord(msgspec.Struct, frozen=True):
    """A midpoint."""

    mid: str


class SpreadRecord(msgspec.Struct, frozen=True):
    """A spread."""

    spread: str


class LastTradeRecord(msgspec.Struct, frozen=True):
    """The last price of a token, and the side of its taker."""

    price: str
    side: str


class TokenLastTradeRecord(msgspec.Struct, frozen=True):
    """The last price of one token of a batch."""

    token_id: str
    price: str
    side: str


class TickSizeRecord(msgspec.Struct, frozen=True):
    """The smallest step of a price."""

    minimum_tick_size: Decimal


class NegRiskRecord(msgspec.Struct, frozen=True):
    """A flag: exactly one market of the group pays."""

    neg_risk: bool


class FeeDetails(msgspec.Struct, frozen=True):
    """A fee's rate and exponent, and whether only takers pay it."""

    r: int
    e: int
    to: bool


class FeeSchedule(msgspec.Struct, frozen=True, rename="camel"):
    """The fee with all its fields."""

    rate: int
    exponent: int
    taker_only: bool
    rebate_rate: int
    category: str
    version: int
    source: str


class FeeRecord(msgspec.Struct, frozen=True):
    """The trading fee in hundredths of a percent; version 1 orders must state `base_fee`."""

    base_fee: int
    fd: FeeDetails
    fee_schedule: FeeSchedule


def find(books: PublicBooks, token_id: str | None) -> TokenRef:
    """Return a token that trades now, or refuse in the words that clients know."""
    if token_id is None or not is_token_id(token_id):
        raise InvalidTokenId
    return books.find_open(token_id)


def book(books: PublicBooks, token_id: str | None) -> bytes:
    """Return the JSON of a token's book, encoded when it last changed."""
    market, is_yes = find(books, token_id)
    return market.book(is_yes=is_yes).raw


def books(books: PublicBooks, queries: Sequence[TokenQuery]) -> bytes:
    """Return the JSON of several books, or refuse too many bytes; tokens that do not trade are left out."""
    found, size = list[bytes](), 0
    for market, is_yes in _token_by_id(books, queries).values():
        raw = market.book(is_yes=is_yes).raw
        size += len(raw)
        if size > BOOKS_BYTES_MAX:
            raise BooksTooLarge(BOOKS_BYTES_MAX)
        found.append(raw)
    return b"[" + b",".join(found) + b"]"


def price(
    books: PublicBooks, token_id: str | None, side: str | None, meaning: PriceSide
) -> PriceRecord:
    """Return the price of a side, or refuse when that side has no order."""
    token = find(books, token_id)
    wanted = _side(side)
    text = _price_text(token, wanted, meaning)
    if text is None:
        raise NoPrice(str(token_id), wanted.name)
    return PriceRecord(text)


def prices(
    books: PublicBooks, queries: Sequence[TokenQuery], meaning: PriceSide
) -> Mapping[str, Mapping[str, str]]:
    """Return the prices of several tokens, of both sides where none is named."""
    answer: dict[str, dict[str, str]] = {}
    for query, token in _found(books, queries):
        sides = [_side(query.side)] if query.side else list(Side)
        texts = {side.name: _price_text(token, side, meaning) for side in sides}
        known = answer.setdefault(query.token_id, {})
        known.update({name: text for name, text in texts.items() if text is not None})
    return answer


def midpoint(books: PublicBooks, token_id: str | None) -> MidpointRecord:
    """Return the midpoint of a token's best prices."""
    return MidpointRecord(_midpoint_text(_top(find(books, token_id))))


def midpoints(books: PublicBooks, queries: Sequence[TokenQuery]) -> Mapping[str, str]:
    """Return the midpoints of several tokens."""
    tokens = _token_by_id(books, queries)
    return {token_id: _midpoint_text(_top(token)) for token_id, token in tokens.items()}


def spread(books: PublicBooks, token_id: str | None) -> SpreadRecord:
    """Return the distance between a token's best prices."""
    return SpreadRecord(spread_text(_top(find(books, token_id))))


def spreads(books: PublicBooks, queries: Sequence[TokenQuery]) -> Mapping[str, str]:
    """Return the spreads of several tokens."""
    tokens = _token_by_id(books, queries)
    return {token_id: spread_text(_top(token)) for token_id, token in tokens.items()}


def last_trade(books: PublicBooks, token_id: str | None) -> LastTradeRecord:
    """Return a token's last price, or refuse when it was never traded."""
    token = find(books, token_id)
    text = _last_price_text(token)
    if text is None:
        raise NeverTraded(str(token_id))
    return LastTradeRecord(text, token.market.last_side(is_yes=token.is_yes).name)


def last_trades(books: PublicBooks, queries: Sequence[TokenQuery]) -> list[TokenLastTradeRecord]:
    """Return the last prices of the tokens that were ever traded."""
    return [
        TokenLastTradeRecord(token_id, text, token.market.last_side(is_yes=token.is_yes).name)
        for token_id, token in _token_by_id(books, queries).items()
        if (text := _last_price_text(token)) is not None
    ]


def tick_size(books: PublicBooks, token_id: str | None) -> TickSizeRecord:
    """Return a token's tick size."""
    return TickSizeRecord(Decimal(tick_text(find(books, token_id).market.ticks_per_one)))


def neg_risk(books: PublicBooks, token_id: str | None) -> NegRiskRecord:
    """Return whether exactly one market of the token's group pays."""
    return NegRiskRecord(find(books, token_id).market.is_neg_risk)


def fee_rate(books: PublicBooks, token_id: str | None) -> FeeRecord:
    """Return the fee that a version 1 order for a token must state."""
    bps = find(books, token_id).market.rules.fee_rate_bps
    return FeeRecord(
        base_fee=bps,
        fd=FeeDetails(r=0, e=0, to=True),
        fee_schedule=FeeSchedule(
            rate=0,
            exponent=0,
            taker_only=True,
            rebate_rate=0,
            category="",
            version=1,
            source="local",
        ),
    )


def parse_tokens(raw: bytes) -> list[TokenQuery]:
    """Return the tokens that the body of a batch names, or refuse."""
    queries = decode(raw, list[TokenQuery], MalformedBatch)
    if len(queries) > TOKENS_PER_BATCH_MAX:
        raise BatchTooLong(TOKENS_PER_BATCH_MAX)
    return queries


def _token_by_id(books: PublicBooks, queries: Sequence[TokenQuery]) -> Mapping[str, TokenRef]:
    """Return the tokens of a batch that trade now by their ids; one that is named twice is answered once."""
    return {query.token_id: token for query, token in _found(books, queries)}


def _found(books: PublicBooks, queries: Sequence[TokenQuery]) -> list[tuple[TokenQuery, TokenRef]]:
    """Return the tokens of a batch that trade now, each with its query."""
    found = []
    for query in queries:
        try:
            found.append((query, find(books, query.token_id)))
        except UnknownMarket:
            continue
    return found


def _side(text: str | None) -> Side:
    try:
        return Side[(text or "").upper()]
    except KeyError:
        raise InvalidSide from None


def _top(token: TokenRef) -> BookTop:
    return token.market.top.seen_from(is_yes=token.is_yes)


def _price_text(token: TokenRef, side: Side, meaning: PriceSide) -> str | None:
    """Return the price of a side: a taker who buys pays the best ask."""
    top = _top(token)
    is_ask = (side is Side.BUY) == (meaning == "taker")
    ticks = top.best_ask_ticks if is_ask else top.best_bid_ticks
    return None if ticks is None else price_texts(top.ticks_per_one)[ticks]


def _midpoint_text(top: BookTop) -> str:
    bid, ask = bests(top)
    return ratio_text(bid + ask, 2 * top.ticks_per_one)


def _last_price_text(token: TokenRef) -> str | None:
    top = _top(token)
    ticks = top.last_price_ticks
    return None if ticks is None else price_texts(top.ticks_per_one)[ticks]

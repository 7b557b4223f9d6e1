"""GET /prices-history and its batch: what a token was worth, once a bucket."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import BatchTooLong, InvalidTokenId, MalformedBatch
from foretell.domain.portfolio.price_history import (
    FIDELITY_MINUTES_MAX,
    MINUTE_S,
    SECONDS_MAX,
    Buckets,
    buckets,
    history_price,
    parse_interval,
)
from foretell.domain.values.tokens import is_token_id
from foretell.edge.codec import decode
from foretell.edge.paging import parse_integer
from foretell.edge.query import Query
from foretell.edge.rendering import rounded
from foretell.store.trading.quote_points import load_first_minute, load_history
from foretell.trading.books.books import PublicBooks, TokenRef
from foretell.trading.context import TradingContext

TOKENS_PER_BATCH_MAX: Final = 20


class PricePoint(msgspec.Struct, frozen=True):
    """A moment in seconds, and the price as it was known then."""

    t: int
    p: Decimal


class HistoryRecord(msgspec.Struct, frozen=True):
    """The history of one token."""

    history: Sequence[PricePoint]


class BatchHistoryRecord(msgspec.Struct, frozen=True):
    """The histories of several tokens."""

    history: dict[str, Sequence[PricePoint]]


class Span(msgspec.Struct, frozen=True):
    """From when to when, how fine; `start_s` None is from the beginning."""

    start_s: int | None
    end_s: int
    fidelity_minutes: int | None


class _BatchBody(msgspec.Struct):
    markets: list[str]
    interval: str | None = None
    fidelity: int | None = None
    start_ts: int | None = None
    end_ts: int | None = None
    start_ts_camel: int | None = msgspec.field(name="startTs", default=None)
    end_ts_camel: int | None = msgspec.field(name="endTs", default=None)


async def price_history(context: TradingContext, query: Query) -> HistoryRecord:
    """Return the history that a query asks for."""
    place = _find(context.books, query.text("market", "token_id") or "")
    span = _span(
        query.text("interval"),
        query.optional_integer("startTs", 0, SECONDS_MAX),
        query.optional_integer("endTs", 0, SECONDS_MAX),
        query.optional_integer("fidelity", 1, FIDELITY_MINUTES_MAX),
        context.now_ms() // 1000,
    )
    return HistoryRecord(await _points(context, place, span))


async def price_histories(context: TradingContext, raw: bytes) -> BatchHistoryRecord:
    """Return the histories that the body of a batch asks for."""
    body = decode(raw, _BatchBody, MalformedBatch)
    if not body.markets:
        raise MalformedBatch("markets must name at least one token")
    if len(body.markets) > TOKENS_PER_BATCH_MAX:
        raise BatchTooLong(TOKENS_PER_BATCH_MAX)
    start_s = body.start_ts if body.start_ts is not None else body.start_ts_camel
    end_s = body.end_ts if body.end_ts is not None else body.end_ts_camel
    span = _span(
        body.interval,
        _in_range(start_s, "start_ts", 0, SECONDS_MAX),
        _in_range(end_s, "end_ts", 0, SECONDS_MAX),
        _in_range(body.fidelity, "fidelity", 1, FIDELITY_MINUTES_MAX),
        context.now_ms() // 1000,
    )
    places = {token_id: _find(context.books, token_id) for token_id in body.markets}
    return BatchHistoryRecord(
        {token_id: await _points(context, place, span) for token_id, place in places.items()}
    )


def _span(
    interval: str | None,
    start_s: int | None,
    end_s: int | None,
    fidelity_minutes: int | None,
    now_s: int,
) -> Span:
    """Return what an interval back from now, or a start with an end, comes to."""
    if interval is not None:
        back_s = parse_interval(interval)
        return Span(None if back_s is None else now_s - back_s, now_s, fidelity_minutes)
    if start_s is None:
        raise MalformedQuery("startTs", "given, in seconds, when there is no interval")
    return Span(start_s, now_s if end_s is None else min(end_s, now_s), fidelity_minutes)


async def _points(context: TradingContext, place: TokenRef, span: Span) -> Sequence[PricePoint]:
    async with context.database.reading() as tx:
        first = await load_first_minute(tx, place.market.condition_id)
        if first is None:
            return ()
        wanted = _buckets(span, first * MINUTE_S)
        known = await load_history(tx, place.market.condition_id, wanted)
    points = []
    for end_s, top in known:
        price = history_price(top.seen_from(is_yes=place.is_yes))
        if price is not None:
            points.append(PricePoint(min(end_s, span.end_s), rounded(price)))
    return points


def _buckets(span: Span, first_s: int) -> Buckets:
    """Return the buckets of a span, none of them before there was anything to show."""
    start_s = first_s if span.start_s is None else max(span.start_s, first_s)
    return buckets(start_s, span.end_s, span.fidelity_minutes)


def _find(books: PublicBooks, token_id: str) -> TokenRef:
    """Return where a token trades or did: history outlives a market."""
    if not is_token_id(token_id):
        raise InvalidTokenId
    return books.find(token_id)


def _in_range(value: int | None, field: str, least: int, most: int) -> int | None:
    return None if value is None else parse_integer(str(value), field, least, least, most)

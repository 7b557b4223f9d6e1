"""GET /prices-history and its batch: the price of a token at the end of each bucket."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from typing import Final, Protocol

import msgspec

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import BatchTooLong, InvalidTokenId, MalformedBatch
from foretell.domain.portfolio.price_history import (
    MINUTE_S,
    POINTS_MAX,
    Buckets,
    buckets,
    history_price,
    parse_interval,
    points_of_each,
    present_end_s,
)
from foretell.domain.portfolio.prices import PRICES_KEPT_MAX, BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.edge.codec import decode, encode_json
from foretell.edge.parameters import Parameter
from foretell.edge.query import Query
from foretell.edge.read_answers import TaggedContent, TaggedParts
from foretell.edge.rendering import rounded
from foretell.runtime.loop_share import LoopShare, SharedAnswer
from foretell.store.database import Database, Transaction
from foretell.store.trading.quote_points import HistoryPoint, load_first_minute, load_history
from foretell.trading.books.books import PublicBooks, TokenRef
from foretell.trading.wire.parameters import (
    END_S,
    FIDELITY,
    HISTORY_TOKEN,
    INTERVAL,
    START_S,
    seconds,
)

TOKENS_PER_BATCH_MAX: Final = 20
POINTS_PER_PART: Final = 250
"""Loaded together, and encoded together, in about half a millisecond each."""
_BATCH_START_S: Final = seconds("start_ts", "first second")
_BATCH_END_S: Final = seconds("end_ts", "last second; now if absent")


class HistoryContext(Protocol):
    """What a history is read with; a benchmark has no engine beside it."""

    @property
    def database(self) -> Database:
        """The tables."""

    @property
    def books(self) -> PublicBooks:
        """The markets, by their tokens."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """The clock."""

    @property
    def loop_share(self) -> LoopShare:
        """The turns of the parts of a long history."""


class PricePoint(msgspec.Struct, frozen=True):
    """A time in seconds, and the price that was known then."""

    t: int
    p: Decimal


class HistoryRecord(msgspec.Struct, frozen=True):
    """The history of one token."""

    history: Sequence[PricePoint]


class BatchHistoryRecord(msgspec.Struct, frozen=True):
    """The histories of several tokens."""

    history: dict[str, Sequence[PricePoint]]


class Span(msgspec.Struct, frozen=True):
    """The requested time span and resolution; `start_s` None is the beginning of the history."""

    start_s: int | None
    end_s: int
    fidelity_minutes: int | None
    points_max: int = POINTS_MAX


class BatchBody(msgspec.Struct):
    """The tokens of a batch, and a span: an interval, or a start and an end in one of two spellings."""

    markets: list[str]
    interval: str | None = None
    fidelity: int | None = None
    start_ts: int | None = None
    end_ts: int | None = None
    start_ts_camel: int | None = msgspec.field(name="startTs", default=None)
    end_ts_camel: int | None = msgspec.field(name="endTs", default=None)


async def price_history(context: HistoryContext, query: Query) -> TaggedContent:
    """Return the history that a query requests, a `HistoryRecord` in JSON."""
    token = _find(context.books, query.read(HISTORY_TOKEN) or "")
    span = _span(
        query.read(INTERVAL),
        query.read(START_S),
        query.read(END_S),
        query.read(FIDELITY),
        context.now_ms() // 1000,
    )
    history = TaggedParts(b'{"history":')
    async with context.database.public_reading() as tx:
        tops = await _load_tops(tx, token.market.condition_id, span)
        await _add_points(history, context.loop_share.begin(), tops, token, span)
    history.add(b"}")
    return history.end()


async def price_histories(context: HistoryContext, raw: bytes) -> bytes:
    """Return the histories that the body of a batch requests, a `BatchHistoryRecord` in JSON.

    They keep their place among the reads until they are encoded, so that few are computed at once.
    """
    body = decode(raw, BatchBody, MalformedBatch)
    if not body.markets:
        raise MalformedBatch("markets must name at least one token")
    if len(body.markets) > TOKENS_PER_BATCH_MAX:
        raise BatchTooLong(TOKENS_PER_BATCH_MAX)
    start_s = body.start_ts if body.start_ts is not None else body.start_ts_camel
    end_s = body.end_ts if body.end_ts is not None else body.end_ts_camel
    span = _span(
        body.interval,
        _in_range(start_s, _BATCH_START_S),
        _in_range(end_s, _BATCH_END_S),
        _in_range(body.fidelity, FIDELITY),
        context.now_ms() // 1000,
    )
    token_by_id = {token_id: _find(context.books, token_id) for token_id in body.markets}
    span = msgspec.structs.replace(span, points_max=points_of_each(len(token_by_id)))
    ids = dict.fromkeys(token.market.condition_id for token in token_by_id.values())
    histories, shared = TaggedParts(b'{"history":{'), context.loop_share.begin()
    async with context.database.public_reading() as tx:
        tops_by_condition = {each: await _load_tops(tx, each, span) for each in ids}
        for position, (token_id, token) in enumerate(token_by_id.items()):
            histories.add(b"," * bool(position) + encode_json(token_id) + b":")
            tops = tops_by_condition[token.market.condition_id]
            await _add_points(histories, shared, tops, token, span)
    histories.add(b"}}")
    return histories.end().content


def _span(
    interval: str | None,
    start_s: int | None,
    end_s: int | None,
    fidelity_minutes: int | None,
    now_s: int,
) -> Span:
    """Return the span of an interval that reaches to now, or of a start and an end."""
    latest_s = present_end_s(now_s)
    if interval is not None:
        back_s = parse_interval(interval)
        return Span(None if back_s is None else latest_s - back_s, latest_s, fidelity_minutes)
    if start_s is None:
        raise MalformedQuery("startTs", "given in seconds if interval is not given")
    return Span(start_s, latest_s if end_s is None else min(end_s, latest_s), fidelity_minutes)


async def _load_tops(tx: Transaction, condition_id: Bytes32, span: Span) -> Sequence[HistoryPoint]:
    """Return the top of a market's book at the end of each bucket."""
    first = await load_first_minute(tx, condition_id)
    if first is None:
        return ()
    tops: list[HistoryPoint] = []
    for part in _parts(_buckets(span, first * MINUTE_S)):
        tops += await load_history(tx, condition_id, part)
    return tops


def _parts(whole: Buckets) -> Iterator[Buckets]:
    """Yield the buckets in parts; the last part may have one more, which ends within a step."""
    first_s, last_s, step_s = whole
    reach_s = POINTS_PER_PART * step_s
    for part_s in range(first_s, last_s + 1, reach_s):
        is_last = last_s < part_s + reach_s
        yield Buckets(part_s, last_s if is_last else part_s + reach_s - step_s, step_s)


async def _add_points(
    history: TaggedParts,
    shared: SharedAnswer,
    tops: Sequence[HistoryPoint],
    token: TokenRef,
    span: Span,
) -> None:
    """Add the prices that a token had, as a list, while the loop serves others between its parts."""
    history.add(b"[")
    is_first = True
    for start in range(0, len(tops), POINTS_PER_PART):
        part = tops[start : start + POINTS_PER_PART]
        encoded = await shared.run(partial(_encoded, part, token, span))
        if encoded:
            history.add(encoded if is_first else b"," + encoded)
            is_first = False
    history.add(b"]")


def _encoded(tops: Sequence[HistoryPoint], token: TokenRef, span: Span) -> bytes:
    """Return the prices that a token had as they stand between the brackets of a list."""
    prices = ((end_s, _price(top, is_yes=token.is_yes)) for end_s, top in tops)
    points = [
        PricePoint(min(end_s, span.end_s), price) for end_s, price in prices if price is not None
    ]
    return encode_json(points)[1:-1]


@lru_cache(maxsize=PRICES_KEPT_MAX)
def _price(top: BookTop, *, is_yes: bool) -> Decimal | None:
    price = history_price(top.seen_from(is_yes=is_yes))
    return None if price is None else rounded(price)


def _buckets(span: Span, first_s: int) -> Buckets:
    """Return the buckets of a span, none of them before the first known price."""
    start_s = first_s if span.start_s is None else max(span.start_s, first_s)
    return buckets(start_s, span.end_s, span.fidelity_minutes, span.points_max)


def _find(books: PublicBooks, token_id: str) -> TokenRef:
    """Return the token, also of a market that is over: its history stays readable."""
    if not is_token_id(token_id):
        raise InvalidTokenId
    return books.find(token_id)


def _in_range(value: int | None, parameter: Parameter[int | None]) -> int | None:
    """Return a number of the body, or refuse one out of the bounds of the query parameter."""
    return None if value is None else parameter.parse([str(value)])

"""Selection and order of events, markets and tags: filters and sort keys to ids.

A list continues after a cursor, the sort values and the id of its last row, so that a page stays the same
when rows are added before it. Rows without a value come last in both directions.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.queries.valuation import liquidity, listed_price_of_yes, real, volume_since
from foretell.store.tables import (
    answers,
    event_tags,
    events,
    markets,
    payouts,
    quotes,
    series,
    sports_events,
    sports_markets,
    tags,
)
from foretell.store.text_order import by_code_points

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
MONTH_MS: Final = 30 * DAY_MS
YEAR_MS: Final = 365 * DAY_MS

Key = sa.ColumnElement[Any]
Clause = sa.ColumnElement[bool]
SortValue = str | int | float | None


class SortField(enum.Enum):
    """Sort keys of lists."""

    ID = enum.auto()
    SLUG = enum.auto()
    TITLE = enum.auto()
    CREATED = enum.auto()
    UPDATED = enum.auto()
    ENDS = enum.auto()
    CLOSED = enum.auto()
    IS_OPEN = enum.auto()
    VOLUME = enum.auto()
    VOLUME_DAY = enum.auto()
    VOLUME_WEEK = enum.auto()
    VOLUME_MONTH = enum.auto()
    VOLUME_YEAR = enum.auto()
    LIQUIDITY = enum.auto()
    COMPETITIVE = enum.auto()
    BEST_BID = enum.auto()
    LAST_PRICE = enum.auto()
    FEATURED = enum.auto()

    @property
    def is_text(self) -> bool:
        """Whether its values are texts; all others are numbers."""
        return self in {SortField.SLUG, SortField.TITLE}


SUMMED: Final = (
    SortField.VOLUME,
    SortField.VOLUME_DAY,
    SortField.VOLUME_WEEK,
    SortField.VOLUME_MONTH,
    SortField.VOLUME_YEAR,
    SortField.LIQUIDITY,
)
"""Sort keys of an event that are sums over its markets."""


class Cursor(NamedTuple):
    """The place of a row in a list: its sort values and its id."""

    values: tuple[SortValue, ...]
    row_id: int


class ListPage(NamedTuple):
    """One page of a sorted list; equal rows are in the order of their ids."""

    limit: int
    offset: int = 0
    fields: tuple[SortField, ...] = ()
    is_ascending: bool = False
    after: Cursor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """A filter for events, and for markets by their events; None and empty match every value.

    Ranges (least, most) apply to the values of the filtered events or markets themselves.
    """

    event_ids: Collection[int] | None = None
    event_slugs: Collection[str] = ()
    tag_ids: Collection[int] = ()
    tag_slugs: Collection[str] = ()
    excluded_tag_ids: Collection[int] = ()
    creator: Address | None = None
    series_ids: Collection[int] = ()
    series_slugs: Collection[str] = ()
    is_closed: bool | None = None
    ranges: Mapping[SortField, tuple[int | None, int | None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketFilter(EventFilter):
    """A filter for markets."""

    market_ids: Collection[int] = ()
    slugs: Collection[str] = ()
    condition_ids: Collection[Bytes32] = ()
    question_ids: Collection[Bytes32] = ()
    token_ids: Collection[AssetId] = ()
    answer_step: str | None = None
    game_ids: Collection[str] = ()
    market_types: Collection[str] = ()


async def load_event_ids(
    tx: Transaction, chosen: EventFilter, page: ListPage, now_ms: int
) -> Sequence[Cursor]:
    """Return the cursors of one page of events."""
    keys = _event_keys(now_ms)
    query = sa.select(events.c.event_id).where(*_event_clauses(chosen, keys))
    return await load_page(tx, query, keys, page)


async def count_events(tx: Transaction, chosen: EventFilter, now_ms: int) -> int:
    """Return how many events match the filter."""
    clauses = _event_clauses(chosen, _event_keys(now_ms))
    return int(await tx.scalar(sa.select(sa.func.count()).select_from(events).where(*clauses)))


async def load_market_ids(
    tx: Transaction, chosen: MarketFilter, page: ListPage, now_ms: int
) -> Sequence[Cursor]:
    """Return the cursors of one page of markets."""
    keys = _market_keys(now_ms)
    query = (
        sa.select(markets.c.market_id)
        .select_from(_quoted().join(events, events.c.event_id == markets.c.event_id))
        .where(*_market_clauses(chosen, keys))
    )
    return await load_page(tx, query, keys, page)


async def load_tag_ids(tx: Transaction, page: ListPage) -> Sequence[Cursor]:
    """Return the cursors of one page of tags."""
    keys = {
        SortField.ID: tags.c.tag_id,
        SortField.SLUG: by_code_points(tags.c.slug),
        SortField.TITLE: by_code_points(tags.c.label),
        SortField.CREATED: tags.c.created_at_ms,
        SortField.UPDATED: tags.c.created_at_ms,
    }
    return await load_page(tx, sa.select(tags.c.tag_id), keys, page)


async def load_page(
    tx: Transaction, query: sa.Select[Any], keys: Mapping[SortField, Key], page: ListPage
) -> Sequence[Cursor]:
    """Return the cursors of one page of a query of ids."""
    row_id = keys[SortField.ID]
    chosen = [keys[field] for field in page.fields]
    if page.after is not None:
        query = query.where(_is_after(chosen, row_id, page.after, is_ascending=page.is_ascending))
    rows = await tx.all(
        query.add_columns(*(key.label(f"key_{index}") for index, key in enumerate(chosen)))
        .order_by(
            *(
                (key.asc() if page.is_ascending else key.desc()).nulls_last()
                for key in (*chosen, row_id)
            )
        )
        .limit(page.limit)
        .offset(page.offset)
    )
    return [Cursor(tuple(map(_plain, row[1:])), row[0]) for row in rows]


def _plain(value: Any) -> SortValue:
    """Return a value fit for JSON: PostgreSQL sums integers to decimals."""
    return int(value) if isinstance(value, Decimal) else value


def _is_after(keys: Sequence[Key], row_id: Key, cursor: Cursor, *, is_ascending: bool) -> Clause:
    equal: list[Clause] = []
    clauses: list[Clause] = []
    for key, value in zip(keys, cursor.values, strict=True):
        if value is None:
            equal.append(key.is_(None))
            continue
        beyond = key > value if is_ascending else key < value
        clauses.append(sa.and_(*equal, sa.or_(beyond, key.is_(None))))
        equal.append(key == value)
    beyond_id = row_id > cursor.row_id if is_ascending else row_id < cursor.row_id
    return sa.or_(*clauses, sa.and_(*equal, beyond_id))


def _event_keys(now_ms: int) -> dict[SortField, Key]:
    of_markets = _market_keys(now_ms)
    is_closed = _is_event_closed()
    closed_at = _over_markets(sa.func.max(payouts.c.timestamp_s))
    return {field: _over_markets(sa.func.sum(of_markets[field])) for field in SUMMED} | {
        SortField.ID: events.c.event_id,
        SortField.SLUG: by_code_points(events.c.slug),
        SortField.TITLE: by_code_points(events.c.title),
        SortField.CREATED: events.c.created_at_ms,
        SortField.UPDATED: events.c.updated_at_ms,
        SortField.ENDS: events.c.ends_at_ms,
        SortField.CLOSED: sa.case((is_closed, closed_at), else_=None),
        SortField.IS_OPEN: sa.case((is_closed, 0), else_=1),
        SortField.COMPETITIVE: _over_markets(sa.func.max(of_markets[SortField.COMPETITIVE])),
        SortField.FEATURED: sa.cast(sa.null(), sa.Integer),
    }


def _over_markets(total: Key) -> Key:
    return (
        sa.select(total)
        .select_from(_quoted())
        .where(markets.c.event_id == events.c.event_id)
        .correlate(events)
        .scalar_subquery()
    )


def _market_keys(now_ms: int) -> dict[SortField, Key]:
    ticks = real(quotes.c.ticks_per_one)
    return {
        SortField.ID: markets.c.market_id,
        SortField.SLUG: by_code_points(markets.c.slug),
        SortField.TITLE: by_code_points(markets.c.question),
        SortField.CREATED: markets.c.created_at_ms,
        SortField.UPDATED: markets.c.updated_at_ms,
        SortField.ENDS: events.c.ends_at_ms,
        SortField.CLOSED: payouts.c.timestamp_s,
        SortField.IS_OPEN: sa.case((payouts.c.condition_id.is_(None), 1), else_=0),
        SortField.VOLUME: sa.func.coalesce(quotes.c.volume_units, 0),
        SortField.VOLUME_DAY: volume_since(now_ms - DAY_MS),
        SortField.VOLUME_WEEK: volume_since(now_ms - WEEK_MS),
        SortField.VOLUME_MONTH: volume_since(now_ms - MONTH_MS),
        SortField.VOLUME_YEAR: volume_since(now_ms - YEAR_MS),
        SortField.LIQUIDITY: liquidity(),
        SortField.COMPETITIVE: -sa.func.abs(listed_price_of_yes() - real(1) / 2),
        SortField.BEST_BID: real(quotes.c.best_bid_ticks) / ticks,
        SortField.LAST_PRICE: real(quotes.c.last_price_ticks) / ticks,
        SortField.FEATURED: sa.cast(sa.null(), sa.Integer),
    }


def _quoted() -> sa.Join:
    return markets.outerjoin(quotes, quotes.c.condition_id == markets.c.condition_id).outerjoin(
        payouts, payouts.c.condition_id == markets.c.condition_id
    )


def _is_event_closed() -> Clause:
    """Return the condition that no market of the event is unresolved."""
    unresolved = (
        sa.select(markets.c.market_id)
        .select_from(markets.outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id))
        .where(markets.c.event_id == events.c.event_id, payouts.c.condition_id.is_(None))
        .correlate(events)
    )
    return ~unresolved.exists()


def _event_clauses(chosen: EventFilter, keys: Mapping[SortField, Key]) -> list[Clause]:
    clauses = _shared_clauses(chosen, keys)
    if chosen.is_closed is not None:
        is_closed = _is_event_closed()
        clauses.append(is_closed if chosen.is_closed else ~is_closed)
    return clauses


def _market_clauses(chosen: MarketFilter, keys: Mapping[SortField, Key]) -> list[Clause]:
    clauses = _shared_clauses(chosen, keys)
    named: tuple[tuple[Collection[Any], tuple[sa.Column[Any], ...]], ...] = (
        (chosen.market_ids, (markets.c.market_id,)),
        (chosen.slugs, (markets.c.slug,)),
        (chosen.condition_ids, (markets.c.condition_id,)),
        (chosen.question_ids, (markets.c.question_id,)),
        (chosen.token_ids, (markets.c.token_yes, markets.c.token_no)),
    )
    for wanted, columns in named:
        if wanted:
            clauses.append(sa.or_(*(column.in_(sorted(wanted)) for column in columns)))
    if chosen.is_closed is not None:
        is_open = payouts.c.condition_id.is_(None)
        clauses.append(~is_open if chosen.is_closed else is_open)
    if chosen.game_ids:
        clauses.append(_has_game(sports_events.c.game_id.in_(sorted(chosen.game_ids))))
    if chosen.market_types:
        typed = sports_markets.c.market_type.in_(sorted(chosen.market_types))
        found = sa.select(sports_markets.c.market_id).where(typed)
        clauses.append(markets.c.market_id.in_(found))
    if chosen.answer_step is not None:
        clauses.append(_newest_step() == chosen.answer_step)
    return clauses


def _newest_step() -> sa.ScalarSelect[Any]:
    """Return the newest step towards a market's answer."""
    asked_id = sa.func.coalesce(markets.c.neg_risk_request_id, markets.c.question_id)
    return (
        sa.select(answers.c.step)
        .where(answers.c.adapter == markets.c.oracle, answers.c.question_id == asked_id)
        .order_by(answers.c.block_number.desc(), answers.c.log_index.desc())
        .limit(1)
        .correlate(markets)
        .scalar_subquery()
    )


def _shared_clauses(chosen: EventFilter, keys: Mapping[SortField, Key]) -> list[Clause]:
    clauses: list[Clause] = []
    if chosen.event_ids is not None:
        clauses.append(events.c.event_id.in_(sorted(chosen.event_ids)))
    if chosen.event_slugs:
        clauses.append(events.c.slug.in_(sorted(chosen.event_slugs)))
    if chosen.creator is not None:
        clauses.append(events.c.creator == chosen.creator)
    named: tuple[tuple[Collection[Any], sa.Column[Any], Callable[[Clause], Clause]], ...] = (
        (chosen.series_ids, series.c.series_id, _has_game),
        (chosen.series_slugs, series.c.slug, _has_game),
        (chosen.tag_ids, tags.c.tag_id, _is_tagged),
        (chosen.tag_slugs, tags.c.slug, _is_tagged),
    )
    clauses += [clause(column.in_(sorted(wanted))) for wanted, column, clause in named if wanted]
    if chosen.excluded_tag_ids:
        clauses.append(~_is_tagged(tags.c.tag_id.in_(sorted(chosen.excluded_tag_ids))))
    for field, (least, most) in (chosen.ranges or {}).items():
        clauses += [] if least is None else [keys[field] >= least]
        clauses += [] if most is None else [keys[field] <= most]
    return clauses


def _is_tagged(is_wanted: Clause) -> Clause:
    return events.c.event_id.in_(
        sa.select(event_tags.c.event_id)
        .join(tags, tags.c.tag_id == event_tags.c.tag_id)
        .where(is_wanted)
    )


def _has_game(is_wanted: Clause) -> Clause:
    games = sports_events.outerjoin(series, series.c.series_id == sports_events.c.series_id)
    return events.c.event_id.in_(
        sa.select(sports_events.c.event_id).select_from(games).where(is_wanted)
    )

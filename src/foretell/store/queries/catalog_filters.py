"""Selection and order of events, markets and tags: filters and sort keys to ids.

Totals that the indexer keeps are sorted by their own indexes, so that a page costs a page.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import one_of
from foretell.store.queries.sorted_pages import (
    Cursor,
    Key,
    ListPage,
    SortField,
    load_cursors,
    load_page,
)
from foretell.store.queries.totals_walks import Walk, kept_keys, walk_of, walked, walked_page
from foretell.store.tables import (
    answers,
    event_tags,
    event_totals,
    events,
    market_totals,
    markets,
    payouts,
    quotes,
    series,
    sports_events,
    sports_markets,
    tags,
)
from foretell.store.text_order import by_code_points
from foretell.store.valuation import quoted_price

Clause = sa.ColumnElement[bool]

PLAIN_PAGES_KEPT_MAX: Final = 256
EVENT_IDS: Final = "event_ids"
"""The parameter of the ids of events in a query that is kept."""
NARROWING_LITTLE: Final = frozenset({"is_closed", "ranges", "excluded_tag_ids"})
"""Filters that most rows may pass; all others name what they match."""


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

    @property
    def is_narrow(self) -> bool:
        """Whether it names what it matches, which may be little of all."""
        names = {field.name for field in fields(self)} - NARROWING_LITTLE
        return self.event_ids is not None or any(getattr(self, name) for name in names)

    @property
    def is_plain(self) -> bool:
        """Whether it asks for nothing but open or closed rows."""
        has_range = any(bounds != (None, None) for bounds in (self.ranges or {}).values())
        return not (self.is_narrow or has_range or self.excluded_tag_ids)


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


async def load_event_ids(tx: Transaction, chosen: EventFilter, page: ListPage) -> Sequence[Cursor]:
    """Return the cursors of one page of events."""
    query, ids = _prepared_event_page(chosen, page, has_total=False)
    return await load_cursors(tx, query, page, ids)


async def load_event_ids_and_total(
    tx: Transaction, chosen: EventFilter, page: ListPage
) -> tuple[Sequence[Cursor], int]:
    """Return the cursors of one page of events, and how many match; the filter names the events, and so few match."""
    assert chosen.event_ids is not None
    assert page.after is None
    query, ids = _prepared_event_page(chosen, page, has_total=True)
    found = await load_cursors(tx, query, page, ids)
    if not found:
        is_none = page.limit > 0 and page.offset == 0
        return [], 0 if is_none else await count_events(tx, chosen)
    total = found[0].values[-1]
    assert isinstance(total, int)
    return [Cursor(row.values[:-1], row.row_id) for row in found], total


def _prepared_event_page(
    chosen: EventFilter, page: ListPage, *, has_total: bool
) -> tuple[sa.Select[Any], Mapping[str, Any]]:
    """Return the query for a page of events, one that is kept if its filter is plain, and the values that it needs."""
    if page.after is not None or not replace(chosen, event_ids=None).is_plain:
        return _event_page(chosen, page, has_total=has_total), {}
    query = _plain_event_page(
        chosen.is_closed,
        page.fields,
        is_ascending=page.is_ascending,
        has_ids=chosen.event_ids is not None,
        has_total=has_total,
    )
    return query, {} if chosen.event_ids is None else {EVENT_IDS: chosen.event_ids}


@lru_cache(maxsize=PLAIN_PAGES_KEPT_MAX)
def _plain_event_page(
    is_closed: bool | None,  # noqa: FBT001 - a filter
    fields: tuple[SortField, ...],
    *,
    is_ascending: bool,
    has_ids: bool,
    has_total: bool,
) -> sa.Select[Any]:
    chosen = EventFilter(is_closed=is_closed, event_ids=() if has_ids else None)
    page = ListPage(0, fields=fields, is_ascending=is_ascending)
    return _event_page(chosen, page, has_total=has_total)


def _event_page(chosen: EventFilter, page: ListPage, *, has_total: bool) -> sa.Select[Any]:
    """Return the query for a page of events; with `has_total` each row ends with the number of all that match."""
    walk = _walk_of(chosen, page)
    keys = _event_keys(walk)
    joined = _totaled_events()
    if walk is not None:
        joined = event_totals.join(events, events.c.event_id == event_totals.c.event_id)
    clauses = [*_event_clauses(chosen, keys), *walked(walk, event_totals)]
    query = sa.select(keys[SortField.ID]).select_from(joined).where(*clauses)
    paged = walked_page(query, keys, page, walk)
    return paged.add_columns(sa.func.count().over()) if has_total else paged


async def count_events(tx: Transaction, chosen: EventFilter) -> int:
    """Return how many events match the filter."""
    if chosen.is_plain:
        return int(await tx.scalar(_plain_event_count(chosen.is_closed)))
    return int(await tx.scalar(_event_count(chosen)))


@lru_cache
def _plain_event_count(is_closed: bool | None) -> sa.Select[Any]:  # noqa: FBT001 - a filter
    return _event_count(EventFilter(is_closed=is_closed))


def _event_count(chosen: EventFilter) -> sa.Select[Any]:
    """Return the query for the number of events; their totals are joined only where a range needs them."""
    joined = _totaled_events() if chosen.ranges else events
    clauses = _event_clauses(chosen, _event_keys(None))
    return sa.select(sa.func.count()).select_from(joined).where(*clauses)


async def load_market_ids(
    tx: Transaction, chosen: MarketFilter, page: ListPage
) -> Sequence[Cursor]:
    """Return the cursors of one page of markets."""
    if chosen.is_plain and page.after is None:
        query = _plain_market_page(chosen.is_closed, page.fields, is_ascending=page.is_ascending)
    else:
        query = _market_page(chosen, page)
    return await load_cursors(tx, query, page)


@lru_cache(maxsize=PLAIN_PAGES_KEPT_MAX)
def _plain_market_page(
    is_closed: bool | None,  # noqa: FBT001 - a filter
    fields: tuple[SortField, ...],
    *,
    is_ascending: bool,
) -> sa.Select[Any]:
    return _market_page(
        MarketFilter(is_closed=is_closed), ListPage(0, fields=fields, is_ascending=is_ascending)
    )


def _market_page(chosen: MarketFilter, page: ListPage) -> sa.Select[Any]:
    """Return the query for a page of markets."""
    walk = _walk_of(chosen, page)
    keys = _market_keys(walk)
    is_total = market_totals.c.market_id == markets.c.market_id
    joined = (
        markets.outerjoin(market_totals, is_total)
        if walk is None
        else market_totals.join(markets, is_total)
    )
    joined = (
        joined.join(events, events.c.event_id == markets.c.event_id)
        .outerjoin(quotes, quotes.c.condition_id == markets.c.condition_id)
        .outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id)
    )
    clauses = [*_market_clauses(chosen, keys), *walked(walk, market_totals)]
    query = sa.select(keys[SortField.ID]).select_from(joined).where(*clauses)
    return walked_page(query, keys, page, walk)


def _walk_of(chosen: EventFilter, page: ListPage) -> Walk | None:
    return None if chosen.is_narrow else walk_of(page.fields, is_closed=chosen.is_closed)


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


@lru_cache
def _event_keys(walk: Walk | None) -> Mapping[SortField, Key]:
    is_closed = _is_event_closed()
    closed_at = _over_markets(sa.func.max(payouts.c.timestamp_s))
    keys = {
        SortField.ID: events.c.event_id,
        SortField.SLUG: by_code_points(events.c.slug),
        SortField.TITLE: by_code_points(events.c.title),
        SortField.CREATED: events.c.created_at_ms,
        SortField.UPDATED: events.c.updated_at_ms,
        SortField.ENDS: events.c.ends_at_ms,
        SortField.CLOSED: sa.case((is_closed, closed_at), else_=None),
        SortField.IS_OPEN: sa.case((is_closed, 0), else_=1),
        SortField.FEATURED: sa.cast(sa.null(), sa.Integer),
    }
    return keys | kept_keys(event_totals, walk)


def _over_markets(total: Key) -> Key:
    return (
        sa.select(total)
        .select_from(markets.outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id))
        .where(markets.c.event_id == events.c.event_id)
        .correlate(events)
        .scalar_subquery()
    )


@lru_cache
def _market_keys(walk: Walk | None) -> Mapping[SortField, Key]:
    keys = {
        SortField.ID: markets.c.market_id,
        SortField.SLUG: by_code_points(markets.c.slug),
        SortField.TITLE: by_code_points(markets.c.question),
        SortField.CREATED: markets.c.created_at_ms,
        SortField.UPDATED: markets.c.updated_at_ms,
        SortField.ENDS: events.c.ends_at_ms,
        SortField.CLOSED: payouts.c.timestamp_s,
        SortField.IS_OPEN: sa.case((payouts.c.condition_id.is_(None), 1), else_=0),
        SortField.BEST_BID: quoted_price(quotes.c.best_bid_ticks),
        SortField.LAST_PRICE: quoted_price(quotes.c.last_price_ticks),
        SortField.FEATURED: sa.cast(sa.null(), sa.Integer),
    }
    return keys | kept_keys(market_totals, walk)


def _totaled_events() -> sa.Join:
    return events.outerjoin(event_totals, event_totals.c.event_id == events.c.event_id)


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
        clauses.append(one_of(events.c.event_id, EVENT_IDS, chosen.event_ids))
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

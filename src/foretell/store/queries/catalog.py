"""Events and markets with all that they are displayed with, by their ids.

`catalog_filters.py` selects and sorts the ids. Volumes of windows, liquidity and past prices are kept by the indexer,
so that a page costs what its rows cost.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.store.database import Transaction
from foretell.store.index.oracle_answers import Answer, AnswerStep, load_answers
from foretell.store.lookups import one_of
from foretell.store.queries.exact_sums import load_event_sums
from foretell.store.queries.games import (
    EVENTS_OF_SERIES_MAX,
    GAME,
    NEWEST_OF_SERIES,
    SERIES_ID,
    SPORTS_MARKET,
    CatalogGame,
    CatalogSportsMarket,
    game_of,
    sports_market_of,
)
from foretell.store.queries.tags import TAGS_OF_EVENT, CatalogTag, tags_in
from foretell.store.quoted_columns import QUOTED, REPORTED, payout
from foretell.store.tables import (
    answers,
    event_totals,
    events,
    halted_markets,
    locked_collateral,
    market_totals,
    markets,
    payouts,
    quotes,
    series,
    sports_events,
    sports_markets,
)
from foretell.store.tables.listings import AMOUNTS
from foretell.store.valuation import VOLUME
from foretell.store.wide_sums import read_wide, wide_sum

NO_DELAY_S: Final = 0
IDS: Final = "ids"
"""The parameter of the ids in a query."""

_WINDOWS: Final = ("day_units", "week_units", "month_units", "year_units")
_PAST_PRICES: Final = ("hour_price", "day_price", "week_price", "month_price")
_ASKED_ID: Final = sa.func.coalesce(markets.c.neg_risk_request_id, markets.c.question_id)


class VolumeSums(NamedTuple):
    """Traded collateral: in total, and within the last day, week, 30 days and 365 days."""

    total_units: int
    day_units: int
    week_units: int
    month_units: int
    year_units: int


class CatalogEvent(NamedTuple):
    """An event, and the sums over its markets.

    `closed_at_s` is None as long as one of them is unresolved.
    """

    event_id: int
    slug: str
    title: str
    creator: str
    market_mode: str
    main_category_slug: str
    rules: str
    resolution_source: str | None
    image: str
    ends_at_ms: int
    created_at_ms: int
    updated_at_ms: int
    volumes: VolumeSums
    liquidity_units: int
    locked_units: int
    closed_at_s: int | None
    is_neg_risk: bool
    neg_risk_market_id: str | None
    evenness: float
    game: CatalogGame | None = None


TaggedEvent = tuple[CatalogEvent, Sequence[CatalogTag]]


class CatalogMarket(NamedTuple):
    """A market, the top of its book, its payout and its volume.

    `past_prices` are the prices of Yes an hour, a day, a week and 30 days ago, None before the
    first trade.
    """

    market_id: int
    event_id: int
    condition_id: str
    question_id: str
    slug: str
    question: str
    title: str
    outcome_yes: str
    outcome_no: str
    token_yes: str
    token_no: str
    oracle: str
    resolution_type: str
    icon: str
    is_neg_risk: bool
    neg_risk_market_id: str | None
    neg_risk_request_id: str | None
    ticks_per_one: int
    size_units_min: int
    fee_rate_bps: int
    created_at_ms: int
    updated_at_ms: int
    volumes: VolumeSums
    liquidity_units: int
    closed_at_s: int | None
    top: BookTop | None
    payout: Payout | None
    past_prices: tuple[float | None, ...]
    answers: tuple[Answer, ...] = ()
    """The proposals and disputes at the optimistic oracle, the oldest first."""
    sports: CatalogSportsMarket | None = None
    is_halted: bool = False
    seconds_delay: int = NO_DELAY_S
    """For how long an order that crosses the book is held; the operator's setting, not a column."""

    @property
    def answer_steps(self) -> tuple[AnswerStep, ...]:
        """What happened to its answers, in order."""
        return tuple(answer.step for answer in self.answers)

    @property
    def is_accepting_orders(self) -> bool:
        """Whether new orders are accepted."""
        return self.payout is None and not self.is_halted


_EVENT_COLUMNS: Final = (
    events.c.event_id,
    events.c.slug,
    events.c.title,
    events.c.creator,
    events.c.market_mode,
    events.c.main_category_slug,
    events.c.rules,
    events.c.resolution_source,
    events.c.image,
    events.c.ends_at_ms,
    events.c.created_at_ms,
    events.c.updated_at_ms,
)

_MARKET_COLUMNS: Final = tuple(
    markets.c[name] for name in CatalogMarket._fields[: CatalogMarket._fields.index("volumes")]
)


async def load_events(tx: Transaction, event_ids: Sequence[int]) -> Sequence[CatalogEvent]:
    """Return these events in the order of the ids; unknown ids are left out."""
    rows = await tx.all(_EVENTS, {IDS: list(event_ids)})
    events_found = await _load_exact(tx, rows)
    event_by_id = {event.event_id: event for event in events_found}
    return [event_by_id[event_id] for event_id in event_ids if event_id in event_by_id]


async def load_tagged_events(tx: Transaction, event_ids: Sequence[int]) -> Sequence[TaggedEvent]:
    """Return these events with their tags, in the order of the ids; unknown ids are left out."""
    rows = await tx.all(_TAGGED_EVENTS, {IDS: list(event_ids)})
    found = {event.event_id: (event, tags) for event, tags in await _load_tagged(tx, rows)}
    return [found[event_id] for event_id in event_ids if event_id in found]


async def load_events_of_series(
    tx: Transaction, series_id: int, events_max: int
) -> Sequence[TaggedEvent]:
    """Return the newest events of a series with their tags, the newest first."""
    rows = await tx.all(_EVENTS_OF_SERIES, {SERIES_ID: series_id, EVENTS_OF_SERIES_MAX: events_max})
    found = await _load_tagged(tx, rows)
    return sorted(found, key=lambda tagged: -tagged[0].event_id)


async def load_catalog_markets(
    tx: Transaction, market_ids: Sequence[int]
) -> Sequence[CatalogMarket]:
    """Return these markets in the order of the ids; unknown ids are left out."""
    found = await _load_markets(tx, _MARKETS, market_ids)
    market_by_id = {market.market_id: market for market in found}
    return [market_by_id[market_id] for market_id in market_ids if market_id in market_by_id]


_RULES: Final = (
    sa.select(events.c.rules)
    .join(markets, markets.c.event_id == events.c.event_id)
    .where(markets.c.market_id == sa.bindparam("market_id", type_=sa.BigInteger))
)


async def load_rules(tx: Transaction, market_id: int) -> str | None:
    """Return the rules of a market's event, or None without the market."""
    rules: str | None = await tx.scalar(_RULES, {"market_id": market_id})
    return rules


async def load_markets_of_events(
    tx: Transaction, event_ids: Collection[int]
) -> Mapping[int, Sequence[CatalogMarket]]:
    """Return the markets of each event, in the order of opening."""
    found = await _load_markets(tx, _MARKETS_OF_EVENTS, event_ids)
    markets_by_event: defaultdict[int, list[CatalogMarket]] = defaultdict(list)
    for market in found:
        markets_by_event[market.event_id].append(market)
    return markets_by_event


def _kept(totals: sa.Table, name: str) -> sa.ColumnElement[Any]:
    """Return a column of totals, which a row has some seconds after it was opened."""
    return sa.func.coalesce(totals.c[name], 0).label(name)


def _select_markets(scope: sa.ColumnElement[bool]) -> sa.Select[Any]:
    same = markets.c.condition_id
    return (
        sa.select(
            *_MARKET_COLUMNS,
            sa.func.coalesce(VOLUME, 0).label("volume_units"),
            *(_kept(market_totals, name) for name in (*_WINDOWS, "liquidity_units")),
            payouts.c.timestamp_s.label("closed_at_s"),
            *(market_totals.c[name] for name in _PAST_PRICES),
            *QUOTED[1:],
            quotes.c.ticks_per_one.label("quoted_ticks_per_one"),
            *REPORTED,
            halted_markets.c.condition_id.is_not(None).label("is_halted"),
            sa.exists().where(answers.c.question_id == _ASKED_ID).label("has_answers"),
            sports_markets.c.market_id.label("sports_market_id"),
            *SPORTS_MARKET,
        )
        .select_from(
            markets.outerjoin(quotes, quotes.c.condition_id == same)
            .outerjoin(payouts, payouts.c.condition_id == same)
            .outerjoin(halted_markets, halted_markets.c.condition_id == same)
            .outerjoin(market_totals, market_totals.c.market_id == markets.c.market_id)
            .outerjoin(sports_markets, sports_markets.c.market_id == markets.c.market_id)
        )
        .where(scope)
        .order_by(markets.c.market_id)
    )


def _select_events(is_wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Return the query for the events of those markets that are wanted."""
    same = markets.c.condition_id
    summed = (
        sa.select(
            markets.c.event_id,
            wide_sum(locked_collateral.c.units).label("locked_units"),
            sa.func.max(payouts.c.timestamp_s).label("closed_at_s"),
            sa.func.count(payouts.c.condition_id).label("closed"),
            sa.func.count().label("markets"),
            sa.func.max(sa.cast(markets.c.is_neg_risk, sa.Integer)).label("is_neg_risk"),
            sa.func.max(markets.c.neg_risk_market_id).label("neg_risk_market_id"),
        )
        .select_from(
            markets.outerjoin(payouts, payouts.c.condition_id == same).outerjoin(
                locked_collateral, locked_collateral.c.condition_id == same
            )
        )
        .where(is_wanted)
        .group_by(markets.c.event_id)
        .subquery()
    )
    return sa.select(
        *_EVENT_COLUMNS,
        *(column for column in summed.c if column.name != "event_id"),
        *(_kept(event_totals, name) for name in (*AMOUNTS, "evenness")),
        *GAME,
    ).select_from(
        events.join(summed, summed.c.event_id == events.c.event_id)
        .outerjoin(event_totals, event_totals.c.event_id == events.c.event_id)
        .outerjoin(sports_events, sports_events.c.event_id == events.c.event_id)
        .outerjoin(series, series.c.series_id == sports_events.c.series_id)
    )


_EVENTS: Final = _select_events(one_of(markets.c.event_id, IDS))
_NAMES: Final = [column.name for column in _EVENTS.selected_columns]
_VOLUMES_BEGIN: Final = _NAMES.index("volume_units")
_EVENT_VOLUMES: Final = slice(_VOLUMES_BEGIN, _VOLUMES_BEGIN + len(VolumeSums._fields))
_EVENT_GAME: Final = slice(len(_NAMES) - len(GAME), len(_NAMES))
_TAGGED_EVENTS: Final = _EVENTS.add_columns(TAGS_OF_EVENT.label("tags"))
_EVENTS_OF_SERIES: Final = _select_events(markets.c.event_id.in_(NEWEST_OF_SERIES)).add_columns(
    TAGS_OF_EVENT.label("tags")
)
_MARKETS: Final = _select_markets(one_of(markets.c.market_id, IDS))
_MARKETS_OF_EVENTS: Final = _select_markets(one_of(markets.c.event_id, IDS))


async def _load_markets(
    tx: Transaction, query: sa.Select[Any], ids: Collection[int]
) -> Sequence[CatalogMarket]:
    rows = await tx.all(query, {IDS: list(ids)})
    answers_by_question: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    answered = [_asked_id(row) for row in rows if row.has_answers]
    for answer in await load_answers(tx, answered) if answered else ():
        answers_by_question[answer.adapter, answer.question_id].append(answer)
    return [_market(row, answers_by_question.get((row.oracle, _asked_id(row)), ())) for row in rows]


def _asked_id(row: Any) -> str:
    """Return the id under which the oracle is asked a market's question."""
    asked_id: str = row.neg_risk_request_id or row.question_id
    return asked_id


async def _load_tagged(tx: Transaction, rows: Sequence[Any]) -> Sequence[TaggedEvent]:
    """Return the events in these rows with their tags."""
    tags = (tags_in(row.tags) for row in rows)
    return list(zip(await _load_exact(tx, rows), tags, strict=True))


async def _load_exact(tx: Transaction, rows: Sequence[Any]) -> Sequence[CatalogEvent]:
    """Return the events in these rows; amounts that their columns may not hold are added up."""
    large = [
        row.event_id
        for row in rows
        if AMOUNT_UNITS_MAX in row[_EVENT_VOLUMES] or row.liquidity_units == AMOUNT_UNITS_MAX
    ]
    sums = await load_event_sums(tx, large) if large else {}
    return [_event(row, sums.get(row.event_id)) for row in rows]


def _event(row: Any, sums: Sequence[int] | None) -> CatalogEvent:
    """Return the event in a row, with these sums if there are any."""
    count = len(_EVENT_COLUMNS)
    *volumes, liquidity_units = sums or (*row[_EVENT_VOLUMES], row.liquidity_units)
    return CatalogEvent._make(
        (
            *row[:count],
            VolumeSums._make(volumes),
            liquidity_units,
            read_wide(row.locked_units),
            row.closed_at_s if row.closed == row.markets else None,
            bool(row.is_neg_risk),
            row.neg_risk_market_id,
            row.evenness,
            game_of(row[_EVENT_GAME]),
        )
    )


def _market(row: Any, steps: Sequence[Answer]) -> CatalogMarket:
    count = len(_MARKET_COLUMNS)
    top = None
    if row.quoted_ticks_per_one is not None:
        top = BookTop(
            row.quoted_ticks_per_one, row.best_bid_ticks, row.best_ask_ticks, row.last_price_ticks
        )
    return CatalogMarket._make(
        (
            *row[:count],
            VolumeSums._make(row[count : count + 5]),
            row.liquidity_units,
            row.closed_at_s,
            top,
            payout(row),
            tuple(row[count + 7 : count + 11]),
            tuple(steps),
            sports_market_of(row.sports_market_id, row[-len(SPORTS_MARKET) :]),
            bool(row.is_halted),
            NO_DELAY_S,
        )
    )

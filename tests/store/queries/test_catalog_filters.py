from collections.abc import Sequence

import pytest
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import CREATOR, Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_token_pair, a_word, an_address

from foretell.domain.creation.payload import Category
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.store.creation.markets import load_markets
from foretell.store.database import Database
from foretell.store.index.oracle_answers import Answer, AnswerStep, record_answers
from foretell.store.queries.catalog import load_catalog_markets
from foretell.store.queries.catalog_filters import (
    EventFilter,
    MarketFilter,
    count_events,
    load_event_ids,
    load_event_ids_and_total,
    load_market_ids,
    load_tag_ids,
)
from foretell.store.queries.sorted_pages import Cursor, ListPage, SortField
from foretell.store.valuation import DAY_MS, MONTH_MS, WEEK_MS, YEAR_MS

pytestmark = pytest.mark.anyio

MARKET_ONLY = {SortField.BEST_BID, SortField.LAST_PRICE}
EVENT_FIELDS = [field for field in SortField if field not in MARKET_ONLY]
TAG_FIELDS = [
    SortField.ID,
    SortField.SLUG,
    SortField.TITLE,
    SortField.CREATED,
    SortField.UPDATED,
]


async def a_world(database: Database) -> None:
    """Open events 1 to 3 of a market each: rain trades most, snow is resolved, hail was never quoted."""
    async with database.writing() as tx:
        rows = Rows(tx)
        tags = (Category("Weather", "weather"), Category("World", "world"))
        rain = an_event_row("rain", tags=tags, ends_at_ms=NOW_MS + 3)
        snow = an_event_row("snow", tags=tags[1:], ends_at_ms=NOW_MS + 2, creator=CREATOR)
        hail = an_event_row("hail", tags=(), ends_at_ms=NOW_MS + 1, creator=an_address("eve"))
        for index, event in enumerate((rain, snow, hail)):
            await rows.open(event, NOW_MS + index)
        await rows.quote("rain", 40, 44, 42, volume_units=9)
        await rows.quote("snow", None, None, 7, volume_units=3)
        await rows.resolve("snow", 1, 0, NOW_S)
        await rows.rest("alice", "rain", Side.BUY, 40, 10 * TOKEN)
        for units, age_ms in ((1, 0), (2, DAY_MS + 1), (4, WEEK_MS + 1), (8, MONTH_MS + 1)):
            await rows.match("rain", units, NOW_MS - age_ms)
        await rows.match("rain", 16, NOW_MS - YEAR_MS - 1)
        await rows.match("hail", 5, NOW_MS - WEEK_MS)
        await rows.match("rain", 32, NOW_MS, TradeStatus.FAILED)


async def events_of(database: Database, chosen: EventFilter, page: ListPage) -> Sequence[Cursor]:
    await keep_listings(database)
    async with database.reading() as tx:
        return await load_event_ids(tx, chosen, page)


async def markets_of(database: Database, chosen: MarketFilter, page: ListPage) -> Sequence[Cursor]:
    await keep_listings(database)
    async with database.reading() as tx:
        return await load_market_ids(tx, chosen, page)


EVENT_VALUES = {
    SortField.ID: [3, 2, 1],
    SortField.SLUG: ["event-snow", "event-rain", "event-hail"],
    SortField.TITLE: ["About snow", "About rain", "About hail"],
    SortField.CREATED: [NOW_MS + 2, NOW_MS + 1, NOW_MS],
    SortField.UPDATED: [NOW_MS + 2, NOW_MS + 1, NOW_MS],
    SortField.ENDS: [NOW_MS + 3, NOW_MS + 2, NOW_MS + 1],
    SortField.CLOSED: [NOW_S, None, None],
    SortField.IS_OPEN: [1, 1, 0],
    SortField.VOLUME: [9, 3, 0],
    SortField.VOLUME_DAY: [1, 0, 0],
    SortField.VOLUME_WEEK: [5, 3, 0],
    SortField.VOLUME_MONTH: [7, 5, 0],
    SortField.VOLUME_YEAR: [15, 5, 0],
    SortField.LIQUIDITY: [4 * TOKEN, 0, 0],
    SortField.COMPETITIVE: [0, pytest.approx(-0.08), -0.5],
    SortField.FEATURED: [None, None, None],
}
MARKET_VALUES = EVENT_VALUES | {
    SortField.SLUG: ["will-it-snow", "will-it-rain", "will-it-hail"],
    SortField.TITLE: ["Will it snow?", "Will it rain?", "Will it hail?"],
    SortField.BEST_BID: [0.4, None, None],
    SortField.LAST_PRICE: [0.42, 0.07, None],
}


async def test_events_and_markets_are_sorted_by_every_field(database: Database) -> None:
    await a_world(database)
    events = {
        field: [
            cursor.values[0]
            for cursor in await events_of(database, EventFilter(), ListPage(9, fields=(field,)))
        ]
        for field in EVENT_FIELDS
    }
    markets = {
        field: [
            cursor.values[0]
            for cursor in await markets_of(database, MarketFilter(), ListPage(9, fields=(field,)))
        ]
        for field in SortField
    }
    assert events == EVENT_VALUES
    assert markets == MARKET_VALUES


async def test_lists_continue_after_any_row_in_any_order_and_direction(database: Database) -> None:
    await a_world(database)
    pages = [
        ListPage(9, fields=fields, is_ascending=is_ascending)
        for field in SortField
        for is_ascending in (True, False)
        for fields in ((field,), (SortField.IS_OPEN, field), (field, SortField.CLOSED))
    ]
    await keep_listings(database)
    async with database.reading() as tx:
        whole = {page: await load_market_ids(tx, MarketFilter(), page) for page in pages}
        rests = {
            (page, index): await load_market_ids(
                tx, MarketFilter(), page._replace(after=rows[index])
            )
            for page, rows in whole.items()
            for index in range(3)
        }
    assert {len(rows) for rows in whole.values()} == {3}
    assert rests == {(page, index): whole[page][index + 1 :] for page, index in rests}


async def test_lists_of_events_and_tags_continue_after_any_row(database: Database) -> None:
    await a_world(database)
    events = {
        field: await events_of(database, EventFilter(), ListPage(9, fields=(field,)))
        for field in EVENT_FIELDS
    }
    async with database.reading() as tx:
        tags = {field: await load_tag_ids(tx, ListPage(9, fields=(field,))) for field in TAG_FIELDS}
        later = {
            field: await load_tag_ids(tx, ListPage(9, fields=(field,), after=rows[0]))
            for field, rows in tags.items()
        }
    rests = {
        field: await events_of(database, EventFilter(), ListPage(9, fields=(field,), after=rows[1]))
        for field, rows in events.items()
    }
    assert rests == {field: rows[2:] for field, rows in events.items()}
    assert later == {field: rows[1:] for field, rows in tags.items()}


FILTERS = {
    "all": (EventFilter(), {1, 2, 3}),
    "ids": (EventFilter(event_ids=[1, 3, 9]), {1, 3}),
    "no ids": (EventFilter(event_ids=[]), set()),
    "slugs": (EventFilter(event_slugs=["event-snow", "other"]), {2}),
    "tag ids": (EventFilter(tag_ids=[1]), {1}),
    "tag slugs": (EventFilter(tag_slugs=["world", "none"]), {1, 2}),
    "excluded": (EventFilter(excluded_tag_ids=[1]), {2, 3}),
    "creator": (EventFilter(creator=an_address("eve")), {3}),
    "closed": (EventFilter(is_closed=True), {2}),
    "open": (EventFilter(is_closed=False), {1, 3}),
    "volume": (EventFilter(ranges={SortField.VOLUME: (3, 8)}), {2}),
    "liquidity": (EventFilter(ranges={SortField.LIQUIDITY: (1, None)}), {1}),
    "created": (EventFilter(ranges={SortField.CREATED: (NOW_MS + 1, None)}), {2, 3}),
    "ends": (EventFilter(ranges={SortField.ENDS: (None, NOW_MS + 2)}), {2, 3}),
    "both": (EventFilter(tag_slugs=["world"], is_closed=False), {1}),
}

MARKET_FILTERS = {
    "market ids": (MarketFilter(market_ids=[2, 9]), {2}),
    "market slugs": (MarketFilter(slugs=["will-it-rain"]), {1}),
    "conditions": (MarketFilter(condition_ids=[a_word("hail")]), {3}),
    "questions": (MarketFilter(question_ids=[a_word("question hail")]), {3}),
    "tokens": (
        MarketFilter(
            token_ids=[
                AssetId(str(a_token_pair("rain").no)),
                AssetId(str(a_token_pair("snow").yes)),
            ]
        ),
        {1, 2},
    ),
    "closed markets": (MarketFilter(is_closed=True), {2}),
    "open markets": (MarketFilter(is_closed=False), {1, 3}),
    "of events": (MarketFilter(event_ids=[1], event_slugs=["event-rain"]), {1}),
}


async def test_filters_select_the_named_rows(database: Database) -> None:
    await a_world(database)
    events = {
        name: {row.row_id for row in await events_of(database, chosen, ListPage(9))}
        for name, (chosen, _) in FILTERS.items()
    }
    markets = {
        name: {row.row_id for row in await markets_of(database, chosen, ListPage(9))}
        for name, (chosen, _) in MARKET_FILTERS.items()
    }
    async with database.reading() as tx:
        counts = {name: await count_events(tx, chosen) for name, (chosen, _) in FILTERS.items()}
    assert events == {name: ids for name, (_, ids) in FILTERS.items()}
    assert markets == {name: ids for name, (_, ids) in MARKET_FILTERS.items()}
    assert counts == {name: len(ids) for name, ids in events.items()}


@pytest.mark.parametrize(
    ("chosen", "page", "ids", "total"),
    [
        (EventFilter(event_ids=[1, 2, 3, 99]), ListPage(2), [3, 2], 3),
        (EventFilter(event_ids=[1, 2, 3]), ListPage(2, 2), [1], 3),
        (EventFilter(event_ids=[1, 2, 3]), ListPage(2, 9), [], 3),
        (EventFilter(event_ids=[1, 2]), ListPage(0), [], 2),
        (EventFilter(event_ids=[99]), ListPage(2), [], 0),
        (EventFilter(event_ids=[]), ListPage(2), [], 0),
        (EventFilter(event_ids=[1, 2, 3], is_closed=True), ListPage(2), [2], 1),
        (EventFilter(event_ids=[1, 2, 3], event_slugs=["event-e1"]), ListPage(2), [1], 1),
    ],
)
async def test_a_page_of_named_events_has_the_number_of_all_that_match(
    database: Database, chosen: EventFilter, page: ListPage, ids: list[int], total: int
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in (1, 2, 3):
            await rows.open(an_event_row(f"e{number}", a_market_row(f"m{number}")))
        await rows.resolve("m2", 1, 0, NOW_S)
        found = await load_event_ids_and_total(tx, chosen, page)
    assert ([row.row_id for row in found[0]], found[1]) == (ids, total)
    assert all(row.values == () for row in found[0])


async def test_an_event_is_closed_when_its_last_market_is(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("weather", a_market_row("rain"), a_market_row("snow")))
        await rows.resolve("rain", 1, 0, NOW_S - 60)
    closed = EventFilter(is_closed=True)
    by_closing = ListPage(9, fields=(SortField.CLOSED,))
    assert await events_of(database, closed, by_closing) == []
    async with database.writing() as tx:
        await Rows(tx, 1000).resolve("snow", 1, 0, NOW_S)
    assert await events_of(database, closed, by_closing) == [Cursor((NOW_S,), 1)]


async def test_markets_are_filtered_by_the_newest_step_of_their_answer(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        names = ("rain", "snow", "hail")
        await rows.open(an_event_row("weather", *(a_market_row(name) for name in names)))
        opened = {market.slug: market for market in await load_markets(tx)}
        steps = [("rain", AnswerStep.PROPOSED), ("snow", AnswerStep.PROPOSED)]
        steps.append(("snow", AnswerStep.DISPUTED))
        await record_answers(
            tx,
            [
                Answer(
                    *(block, 0, 0),
                    adapter=opened[f"will-it-{name}"].oracle,
                    question_id=opened[f"will-it-{name}"].question_id,
                    step=step,
                    account=an_address("ann"),
                    price="0",
                    timestamp_s=block,
                    tx_hash=a_word(f"tx {block}"),
                )
                for block, (name, step) in enumerate(steps)
            ],
        )
    chosen = {
        step: [
            cursor.row_id
            for cursor in await markets_of(database, MarketFilter(answer_step=step), ListPage(9))
        ]
        for step in (*AnswerStep, None)
    }
    assert {step: len(found) for step, found in chosen.items()} == {
        "proposed": 1,
        "disputed": 1,
        None: 3,
    }
    async with database.reading() as tx:
        markets = await load_catalog_markets(tx, sorted(chosen[None]))
    assert {market.slug: market.answer_steps for market in markets} == {
        "will-it-rain": ("proposed",),
        "will-it-snow": ("proposed", "disputed"),
        "will-it-hail": (),
    }
    times = {market.slug: [each.timestamp_s for each in market.answers] for market in markets}
    assert times == {"will-it-rain": [0], "will-it-snow": [1, 2], "will-it-hail": []}

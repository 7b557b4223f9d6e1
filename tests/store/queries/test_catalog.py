from collections.abc import Sequence

import pytest
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import CREATOR, ORACLE, TAGS, Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_token_pair, a_word

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import BookTop
from foretell.store.database import Database
from foretell.store.queries.catalog import (
    VolumeSums,
    load_catalog_markets,
    load_events,
    load_markets_of_events,
    load_tagged_events,
)
from foretell.store.queries.tags import (
    CatalogTag,
    load_tag_by_slug,
    load_tags,
    load_tags_of_events,
    load_top_tags,
)
from foretell.store.tables import quotes
from foretell.store.valuation import DAY_MS, MONTH_MS, WEEK_MS, YEAR_MS

pytestmark = pytest.mark.anyio


async def a_weather_event(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        rain, snow = a_market_row("rain"), a_market_row("snow", is_neg_risk=True)
        await rows.open(an_event_row("weather", rain, snow))
        await rows.open(an_event_row("quiet", tags=TAGS[:1]))
        await rows.quote("rain", 40, 44, 42, volume_units=100)
        await rows.quote("snow", 10, 12, None, volume_units=11)
        await rows.rest("alice", "rain", Side.BUY, 40, 10 * TOKEN)
        await rows.rest("alice", "snow", Side.SELL, 12, 10 * TOKEN)
        await rows.match("rain", 16, NOW_MS - YEAR_MS - 1)
        await rows.match("rain", 8, NOW_MS - MONTH_MS - 1)
        await rows.match("rain", 4, NOW_MS - WEEK_MS - 1)
        await rows.quoted_at("rain", NOW_S - 2 * 86_400, 20, 50, volume_units=28)
        await rows.match("rain", 2, NOW_MS - DAY_MS - 1)
        await rows.quoted_at("rain", NOW_S - 7200, 30, 32, volume_units=30)
        await rows.match("rain", 1, NOW_MS)
        await rows.match("rain", 32, NOW_MS, TradeStatus.FAILED)
        await rows.match("snow", 3, NOW_MS - DAY_MS)
        await rows.lock("rain", 5 * TOKEN)
        await rows.lock("snow", 7 * TOKEN)


async def test_an_event_is_the_sum_of_its_markets(database: Database) -> None:
    await a_weather_event(database)
    await keep_listings(database)
    async with database.reading() as tx:
        quiet, weather = await load_events(tx, [2, 9, 1])
    assert (weather.event_id, weather.slug, weather.title) == (1, "event-weather", "About weather")
    assert (weather.creator, weather.market_mode) == (CREATOR, "binary")
    assert weather.volumes == VolumeSums(111, 4, 6, 10, 18)
    assert weather.liquidity_units == 4 * TOKEN + 12 * TOKEN // 10
    assert weather.locked_units == 12 * TOKEN
    assert weather.is_neg_risk
    assert weather.closed_at_s is None
    assert weather.evenness == pytest.approx(-0.08)
    assert quiet.volumes == VolumeSums(0, 0, 0, 0, 0)
    assert (quiet.liquidity_units, quiet.locked_units, quiet.is_neg_risk) == (0, 0, False)


async def test_an_event_closes_with_its_last_market(database: Database) -> None:
    await a_weather_event(database)
    async with database.writing() as tx:
        await Rows(tx, 999).resolve("rain", 1, 0, NOW_S - 60)
    await keep_listings(database)
    async with database.reading() as tx:
        [before] = await load_events(tx, [1])
    async with database.writing() as tx:
        await Rows(tx, 1000).resolve("snow", 0, 1, NOW_S)
    await keep_listings(database)
    async with database.reading() as tx:
        [after] = await load_events(tx, [1])
    assert (before.closed_at_s, after.closed_at_s) == (None, NOW_S)


async def test_a_market_has_its_book_its_payout_and_its_past_prices(database: Database) -> None:
    await a_weather_event(database)
    async with database.writing() as tx:
        await Rows(tx, 1000).resolve("snow", 0, 1, NOW_S)
    await keep_listings(database)
    async with database.reading() as tx:
        snow, rain = await load_catalog_markets(tx, [2, 99, 1])
    assert (rain.condition_id, rain.question_id) == (a_word("rain"), a_word("question rain"))
    assert (int(rain.token_yes), int(rain.token_no)) == a_token_pair("rain")
    assert (rain.oracle, rain.event_id) == (ORACLE, 1)
    assert rain.volumes == VolumeSums(100, 1, 3, 7, 15)
    assert (rain.top, rain.payout, rain.closed_at_s) == (BookTop(100, 40, 44, 42), None, None)
    assert list(rain.past_prices) == [pytest.approx(0.31), pytest.approx(0.35), 0.5, 0.5]
    assert (snow.top, snow.payout) == (BookTop(100, 10, 12, None), Payout(0, 1))
    assert snow.closed_at_s == NOW_S


async def test_a_market_without_a_quote_has_no_book(database: Database) -> None:
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
        await tx.execute(quotes.delete())
    await keep_listings(database)
    async with database.reading() as tx:
        [market] = await load_catalog_markets(tx, [1])
    assert (market.top, market.volumes.total_units, market.liquidity_units) == (None, 0, 0)


async def test_markets_are_grouped_by_their_events(database: Database) -> None:
    await a_weather_event(database)
    await keep_listings(database)
    async with database.reading() as tx:
        found = await load_markets_of_events(tx, [1, 2, 9])
    slugs = {event_id: [market.slug for market in group] for event_id, group in found.items()}
    assert slugs == {1: ["will-it-rain", "will-it-snow"], 2: ["will-it-quiet"]}


async def test_tags_are_found_by_id_by_slug_and_by_event(database: Database) -> None:
    await a_weather_event(database)
    politics = CatalogTag(1, "Politics", "politics", NOW_MS, 2)
    news = CatalogTag(3, "News", "news", NOW_MS, 1)
    async with database.reading() as tx:
        assert await load_tags(tx, [3, 9, 1]) == [news, politics]
        assert await load_tag_by_slug(tx, "politics") == politics
        assert await load_tag_by_slug(tx, "none") is None
        by_event = await load_tags_of_events(tx, [1, 2])
    labels = {event_id: [tag.label for tag in group] for event_id, group in by_event.items()}
    assert labels == {1: ["Politics", "World", "News"], 2: ["Politics"]}


@pytest.mark.parametrize(
    ("ids", "limit", "considered", "found"),
    [
        ([3, 1, 9], 5, 5, [1, 3]),
        ([1, 2, 3], 2, 5, [1, 2]),
        ([2, 3], 5, 2, [2]),
        ([3], 5, 2, []),
        ([], 5, 5, []),
    ],
)
async def test_the_tags_with_the_most_events_come_first_if_they_are_among_those_considered(
    database: Database, ids: Sequence[int], limit: int, considered: int, found: Sequence[int]
) -> None:
    await a_weather_event(database)
    async with database.reading() as tx:
        top = await load_top_tags(tx, ids, limit, considered)
        assert top == await load_tags(tx, found)


async def test_events_are_loaded_with_their_tags_in_the_order_of_the_ids(
    database: Database,
) -> None:
    await a_weather_event(database)
    async with database.writing() as tx:
        await Rows(tx, 100).open(an_event_row("bare", tags=()))
    async with database.reading() as tx:
        found = await load_tagged_events(tx, [3, 9, 2, 1])
        assert [event for event, _ in found] == await load_events(tx, [3, 2, 1])
        tags = await load_tags_of_events(tx, [1, 2, 3])
    assert [list(own) for _, own in found] == [tags.get(each, []) for each in (3, 2, 1)]
    assert [len(own) for _, own in found] == [0, 1, 3]

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.values import CHAIN_ID, EXCHANGE, NOW_MS, a_token_pair, a_word, an_address

from foretell.domain.creation.payload import Category, MarketMode, ResolutionType
from foretell.store.creation.markets import (
    EventRow,
    MarketRow,
    load_market,
    load_markets,
    record_event,
)
from foretell.store.database import Database
from foretell.store.tables import event_tags, events, markets, tags

pytestmark = pytest.mark.anyio


def a_market_row(name: str = "rain", **fields: Any) -> MarketRow:
    row = MarketRow(
        condition_id=a_word(f"condition of {name}"),
        question_id=a_word(f"question of {name}"),
        market_key="binary",
        slug=name,
        question=f"Will there be {name}?",
        title=name.title(),
        outcome_yes="Yes",
        outcome_no="No",
        tokens=a_token_pair(name),
        exchange=EXCHANGE,
        oracle=an_address("adapter"),
        resolution_type=ResolutionType.DIRECT,
        metadata_id=f"metadata-of-{name}",
        metadata_uri=f"local://metadata-of-{name}",
        icon="icon",
        ticks_per_one=100,
        size_units_min=5_000_000,
        fee_rate_bps=0,
    )
    return replace(row, **fields)


def an_event_row(name: str = "rain", **fields: Any) -> EventRow:
    row = EventRow(
        request_id=f"request of {name}",
        slug=name,
        title=name.title(),
        creator=an_address("creator"),
        chain_id=CHAIN_ID,
        market_mode=MarketMode.BINARY,
        main_category_slug="weather",
        rules="The rules.",
        resolution_source=None,
        image="image",
        ends_at_ms=NOW_MS + 1,
        tags=(Category("Weather", "weather"), Category("Norway", "norway")),
        markets=(a_market_row(name),),
    )
    return replace(row, **fields)


async def record(database: Database, event: EventRow, now_ms: int = NOW_MS) -> int:
    async with database.writing() as tx:
        return await record_event(tx, event, now_ms)


async def rows_of(database: Database, *columns: sa.Column[Any]) -> list[tuple[Any, ...]]:
    async with database.reading() as tx:
        return [tuple(row) for row in await tx.all(sa.select(*columns).order_by(*columns))]


async def test_an_opened_market_is_loaded(database: Database) -> None:
    await record(database, an_event_row())

    async with database.reading() as tx:
        assert await load_markets(tx) == [a_market_row()]
        assert await load_market(tx, a_word("condition of rain")) == a_market_row()
        assert await load_market(tx, a_word("other")) is None


async def test_ids_continue_without_gaps(database: Database) -> None:
    several = an_event_row(
        "cup",
        markets=(a_market_row("cup-a", market_key="a"), a_market_row("cup-b", market_key="b")),
    )

    ids = [
        await record(database, event) for event in (an_event_row(), several, an_event_row("snow"))
    ]

    assert ids == [1, 2, 3]
    assert await rows_of(database, markets.c.market_id, markets.c.event_id, markets.c.slug) == [
        (1, 1, "rain"),
        (2, 2, "cup-a"),
        (3, 2, "cup-b"),
        (4, 3, "snow"),
    ]


async def test_an_event_is_stored_with_all_fields_of_its_page(database: Database) -> None:
    await record(database, an_event_row(resolution_source="https://example.org"))

    columns = (
        events.c.slug,
        events.c.creator,
        events.c.main_category_slug,
        events.c.resolution_source,
        events.c.ends_at_ms,
        events.c.created_at_ms,
    )
    assert await rows_of(database, *columns) == [
        ("rain", an_address("creator"), "weather", "https://example.org", NOW_MS + 1, NOW_MS)
    ]


async def test_events_share_their_tags_and_a_tag_keeps_its_first_label(
    database: Database,
) -> None:
    await record(database, an_event_row())
    other = (Category("WEATHER", "weather"), Category("Snow", "snow"))
    await record(database, an_event_row("snow", tags=other))

    assert await rows_of(database, tags.c.tag_id, tags.c.slug, tags.c.label) == [
        (1, "weather", "Weather"),
        (2, "norway", "Norway"),
        (3, "snow", "Snow"),
    ]
    assert await rows_of(database, event_tags.c.event_id, event_tags.c.tag_id) == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 3),
    ]


async def test_events_opened_at_once_get_ids_of_their_own(database: Database) -> None:
    names = [f"event-{index}" for index in range(6)]

    ids = await asyncio.gather(*(record(database, an_event_row(name)) for name in names))

    assert sorted(ids) == [1, 2, 3, 4, 5, 6]


async def test_a_condition_or_a_slug_is_not_opened_twice(database: Database) -> None:
    await record(database, an_event_row())

    with pytest.raises(sa.exc.IntegrityError):
        await record(database, an_event_row("rain-2", markets=(a_market_row(),)))
    with pytest.raises(sa.exc.IntegrityError):
        await record(database, an_event_row("rain", markets=(a_market_row("other"),)))

    assert len(await rows_of(database, events.c.slug)) == 1


async def test_a_new_event_wakes_the_watches_on_markets(database: Database) -> None:
    watch = await database.watch("markets")

    await record(database, an_event_row())

    assert await watch.wait(5)

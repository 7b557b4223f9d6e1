import pytest
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS

from foretell.domain.creation.payload import Category
from foretell.store.database import Database
from foretell.store.queries.search_texts import load_texts, load_written_events

pytestmark = pytest.mark.anyio


async def test_events_are_found_by_title_slug_questions_and_tags(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        tags = (Category("Été", "ete"),)
        markets = (a_market_row("rain"), a_market_row("snow"))
        await rows.open(an_event_row("weather", *markets, tags=tags))
        await rows.open(an_event_row("old", tags=()), NOW_MS - 1)
        await rows.open(an_event_row("late", tags=()))
    async with database.reading() as tx:
        found = await load_written_events(tx, NOW_MS, 0, 10)
        later = await load_written_events(tx, NOW_MS, found[0].event_id, 10)
        first = await load_written_events(tx, 0, 0, 1)
        texts = await load_texts(tx, [event.event_id for event in found])
    assert [texts[event.event_id] for event in found] == [
        ["About weather", "event-weather", "Will it rain?", "Will it snow?", "Été"],
        ["About late", "event-late", "Will it late?"],
    ]
    assert [event.updated_at_ms for event in found] == [NOW_MS, NOW_MS]
    assert later == found[1:]
    assert first == found[:1]

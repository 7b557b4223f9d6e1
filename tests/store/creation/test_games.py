from dataclasses import replace

import pytest
import sqlalchemy as sa
from tests.rigs.payloads import ABSENT, AWAY, a_team
from tests.rigs.rows import a_game_event_row
from tests.rigs.values import NOW_MS

from foretell.domain.creation.payload import Category
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.tables import event_tags, series, sport_tags, sports, sports_markets, teams

pytestmark = pytest.mark.anyio

LATER = NOW_MS + 1000
OTHER_LOGO = "https://logos.example/other.png"


async def test_a_known_sport_series_and_team_keep_what_was_said_first(database: Database) -> None:
    first = a_game_event_row("first", sportSlug=ABSENT)
    again = a_game_event_row(
        "again",
        sourceLeagueLabel="Taken over",
        teams=[a_team(abbreviation="XXX", logo=OTHER_LOGO), a_team(AWAY, logo=OTHER_LOGO)],
    )
    async with database.writing() as tx:
        await record_event(tx, first, NOW_MS)
        await record_event(tx, again, LATER)

    async with database.reading() as tx:
        [sport] = await tx.all(sa.select(sports))
        [league] = await tx.all(sa.select(series))
        home, away = await tx.all(sa.select(teams).order_by(teams.c.team_id))
    assert (sport.slug, sport.image, sport.created_at_ms) == ("soccer", "image-again", LATER)
    assert (league.title, league.image, league.sport_id) == ("Eliteserien", "image-first", 1)
    assert (league.created_at_ms, league.updated_at_ms) == (NOW_MS, LATER)
    assert (home.abbreviation, home.logo) == ("BRA", "https://logos.example/brann.png")
    assert (away.logo, away.updated_at_ms) == ("https://logos.example/molde.png", NOW_MS)


async def test_a_sport_has_the_tags_of_all_its_events_once(database: Database) -> None:
    world = Category("World cup", "world-cup")
    first = a_game_event_row("first")
    rows = [
        first,
        replace(a_game_event_row("second"), tags=(*first.tags, world)),
        replace(a_game_event_row("third", sportSlug=ABSENT), tags=(Category("None", "none"),)),
    ]
    async with database.writing() as tx:
        for row in rows:
            await record_event(tx, row, NOW_MS)

    async with database.reading() as tx:
        kept = await tx.all(sa.select(sport_tags))
        of_events = await tx.all(sa.select(event_tags.c.tag_id).where(event_tags.c.event_id < 3))
    expected = {(1, row.tag_id) for row in of_events}
    assert sorted(map(tuple, kept)) == sorted(expected)
    assert len(of_events) > len(expected)


async def test_a_missing_logo_is_added(database: Database) -> None:
    bare = [a_team(logo=ABSENT), a_team(AWAY, logo=ABSENT)]
    async with database.writing() as tx:
        await record_event(tx, a_game_event_row("first", teams=bare), NOW_MS)
        await record_event(tx, a_game_event_row("again"), LATER)

    async with database.reading() as tx:
        rows = await tx.all(sa.select(teams.c.logo, teams.c.updated_at_ms))
    assert [tuple(row) for row in rows] == [
        ("https://logos.example/brann.png", LATER),
        ("https://logos.example/molde.png", LATER),
    ]


async def test_each_market_of_a_game_has_a_row_under_its_id(database: Database) -> None:
    async with database.writing() as tx:
        await record_event(tx, a_game_event_row("first"), NOW_MS)
        await record_event(tx, a_game_event_row("again", template={}, markets=ABSENT), LATER)

    async with database.reading() as tx:
        rows = await tx.all(
            sa.select(sports_markets.c.market_id, sports_markets.c.line).order_by(
                sports_markets.c.market_id
            )
        )
    lines = [row.line for row in rows]
    assert [row.market_id for row in rows] == list(range(1, 11))
    assert lines == [None] * 4 + ["-1.5", "1.5", "2.5"] + [None] * 3

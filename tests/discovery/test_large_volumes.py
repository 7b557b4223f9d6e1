"""A3: markets whose volumes together are more than a column holds."""

from typing import Any

import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows, a_game_event_row, a_market_row, an_event_row
from tests.rigs.values import TOKEN

from foretell.store.database import Database

pytestmark = pytest.mark.anyio

LARGE = 2**62
MARKETS = ("rain", "snow", "hail")


def volumes(answer: Any) -> list[float]:
    """Return the volumes of a list of markets, events or series, or of the events that a search found."""
    listed = answer.get("events") or answer["data"] if isinstance(answer, dict) else answer
    return [float(each["volume"]) for each in listed]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/events", [3 * LARGE]),
        ("/events?order=volume", [3 * LARGE]),
        ("/events/pagination", [3 * LARGE]),
        ("/markets", [LARGE] * 3),
        ("/public-search?q=weather", [3 * LARGE]),
    ],
)
async def test_a3_the_volume_of_an_event_has_no_bound(
    reader: Reader, database: Database, path: str, expected: list[int]
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("weather", *map(a_market_row, MARKETS)))
        for name in MARKETS:
            await rows.quote(name, 40, 42, 41, volume_units=LARGE)
            await rows.lock(name, LARGE)
    assert volumes(await reader.get(path)) == [units / TOKEN for units in expected]


async def test_a3_the_volume_of_a_series_has_no_bound(reader: Reader, database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("first", "second", "third"):
            await rows.open(a_game_event_row(name))
            await rows.quote(f"{name} btts", 40, 42, 41, volume_units=LARGE)
    assert volumes(await reader.get("/series")) == [3 * LARGE / TOKEN]


async def test_a3_the_volume_of_a_series_is_exact_whatever_the_volumes_of_its_events(
    reader: Reader, database: Database
) -> None:
    games = [a_game_event_row(name) for name in ("first", "second")]
    async with database.writing() as tx:
        rows = Rows(tx)
        for game, name in zip(games, ("first", "second"), strict=True):
            await rows.open(game)
            for market in game.markets:
                await rows.quote(f"{name} {market.market_key}", 40, 42, 41, volume_units=LARGE)
    [series] = await reader.get("/series")
    assert series["volume"] == 2 * len(games[0].markets) * LARGE / TOKEN
    assert (await reader.get(f"/series/{series['id']}"))["volume"] == series["volume"]

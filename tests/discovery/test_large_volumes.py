"""A3: markets whose volumes together are more than a column holds."""

from typing import Any

import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows, a_game_event_row, a_market_row, an_event_row
from tests.rigs.values import TOKEN

from foretell.store.database import Database

pytestmark = pytest.mark.anyio

LARGE = 2**62
MOST = (2**63 - 1) / TOKEN


def volumes(answer: Any) -> list[float]:
    """Return the volumes of a list of markets, events or series, or of the events that a search found."""
    listed = answer["events"] if isinstance(answer, dict) else answer
    return [float(each["volume"]) for each in listed]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/events", [MOST]),
        ("/events?order=volume", [MOST]),
        ("/markets", [LARGE / TOKEN, LARGE / TOKEN]),
        ("/public-search?q=weather", [MOST]),
    ],
)
async def test_a3_an_event_has_at_most_the_volume_that_a_column_holds(
    reader: Reader, database: Database, path: str, expected: list[float]
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("weather", a_market_row("rain"), a_market_row("snow")))
        for name in ("rain", "snow"):
            await rows.quote(name, 40, 42, 41, volume_units=LARGE)
            await rows.lock(name, LARGE)
    assert volumes(await reader.get(path)) == pytest.approx(expected)


async def test_a3_the_volume_of_a_series_has_no_bound(reader: Reader, database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("first", "second", "third"):
            await rows.open(a_game_event_row(name))
            await rows.quote(f"{name} btts", 40, 42, 41, volume_units=LARGE)
    assert volumes(await reader.get("/series")) == pytest.approx([3 * LARGE / TOKEN])

"""A trade whose settlement has failed is in no volume."""

from typing import Any

import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.values import NOW_MS, TOKEN

from foretell.domain.exchange.trade import TradeStatus
from foretell.store.database import Database
from foretell.store.valuation import HOUR_MS

pytestmark = pytest.mark.anyio

WINDOWS = ("volume24hr", "volume1wk", "volume1mo", "volume1yr")
GAME = "game btts"


@pytest.fixture
async def traded(database: Database) -> None:
    """A game in whose market 5 was traded, and 2 in vain, within the last day."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(a_game_event_row("game"))
        await rows.match(GAME, 5 * TOKEN, NOW_MS - HOUR_MS)
        await rows.match(GAME, 2 * TOKEN, NOW_MS - HOUR_MS, TradeStatus.FAILED)
        await rows.quote(GAME, 40, 42, 41, volume_units=7 * TOKEN)
        await rows.fail(GAME, 2 * TOKEN)


def volumes(answer: dict[str, Any]) -> list[float]:
    """Return the volume of all time, and those of the windows that the answer has."""
    return [float(answer[name]) for name in ("volume", *WINDOWS) if name in answer]


@pytest.mark.usefixtures("traded")
@pytest.mark.parametrize("path", ["/events", "/events?order=volume", "/events/1"])
async def test_an_event_has_the_volume_of_trades_that_have_not_failed(
    reader: Reader, path: str
) -> None:
    answer = await reader.get(path)
    [event] = answer if isinstance(answer, list) else [answer]
    [most, *others] = sorted(map(volumes, event["markets"]), reverse=True)
    assert volumes(event) == most == [5] * 5
    assert others == [[0] * 5] * len(others)


@pytest.mark.usefixtures("traded")
@pytest.mark.parametrize(
    ("query", "found"), [("volume_num_min=5", 1), ("volume_num_min=5.000001", 0)]
)
async def test_markets_are_filtered_by_the_volume_of_trades_that_have_not_failed(
    reader: Reader, query: str, found: int
) -> None:
    listed = await reader.get(f"/markets?{query}")
    assert [volumes(each) for each in listed] == [[5] * 5] * found


@pytest.mark.usefixtures("traded")
@pytest.mark.parametrize("path", ["/series", "/series/1"])
async def test_a_series_has_the_volume_of_trades_that_have_not_failed(
    reader: Reader, path: str
) -> None:
    answer = await reader.get(path)
    [series] = answer if isinstance(answer, list) else [answer]
    assert series["volume"] == 5

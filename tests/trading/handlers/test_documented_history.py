"""The example of price histories on the trading API's page: each point is what the API answers."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.rigs.rows import Rows
from tests.rigs.trading import TradingRig
from tests.rigs.values import NOW_S, an_asset

pytestmark = pytest.mark.anyio

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "trading-api.md"
EXAMPLE: Final = "For example, these minutes of Yes"
DAY_S: Final = 86_400
MIDNIGHT_S: Final = NOW_S // DAY_S * DAY_S - DAY_S


def at_s(clock: str) -> int:
    hours, minutes = clock.split(":")
    return MIDNIGHT_S + int(hours) * 3_600 + int(minutes) * 60


def ticks(price: str) -> int | None:
    return None if price == "-" else round(float(price) * 100)


async def test_the_points_of_the_example_are_what_the_api_answers(rig: TradingRig) -> None:
    example = PAGE.read_text().partition(EXAMPLE)[2].partition("Prices are stored")[0]
    rows = re.findall(r"^\| (\d\d:\d\d) \| (.+) \|$", example, re.MULTILINE)
    cells = [(clock, *rest.split(" | ")) for clock, rest in rows]
    async with rig.context.database.writing() as tx:
        for clock, *prices in [row for row in cells if len(row) == 4]:
            await Rows(tx).quoted_at("market", at_s(clock), *map(ticks, prices))
    points = [row for row in cells if len(row) == 3]
    assert len(points) == 2
    for place, is_yes in ((1, True), (2, False)):
        asked: dict[str, Any] = {"startTs": at_s("12:00"), "endTs": at_s("12:10"), "fidelity": 5}
        asked["market"] = an_asset(is_yes=is_yes)
        answer = await rig.client.get("/prices-history", params=asked)
        assert answer.json()["history"] == [
            {"t": at_s(row[0]), "p": float(row[place])} for row in points
        ]

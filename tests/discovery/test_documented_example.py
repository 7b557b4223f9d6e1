"""The example of the discovery API's page: each of its values is what the API answers."""

import json
import re
from pathlib import Path

import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, TOKEN

from foretell.domain.exchange.order import Side
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "discovery-api.md"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MATCHED = ((1.5 / 24, 20), (2, 5), (20, 3), (200, 2), (400, 4))
"""How many days ago how much collateral was matched."""
QUOTED = ((1 / 24, 38, 42), (1, 29, 31), (7, 50, 54), (30, 20, 24))
"""How many days ago the book was at which prices."""


def documented() -> dict[str, list[float]]:
    """Return the fields and values of the example's table."""
    text = PAGE.read_text().partition("For example, the book")[2]
    rows = re.findall(r"^\| ([\w ]+) \| [^|]+ \| ([-\d., ]+) \|$", text, re.MULTILINE)
    return {field: [float(value) for value in values.split(", ")] for field, values in rows}


async def fill(database: Database) -> None:
    """Write what the example says of its two markets."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("rain", a_market_row("rain"), a_market_row("snow")))
        await rows.quote("rain", 42, 48, 44, volume_units=34 * TOKEN)
        await rows.quote("snow", 8, 12, volume_units=6 * TOKEN)
        for days, bid, ask in QUOTED:
            await rows.quoted_at("rain", (NOW_MS - int(days * DAY_MS)) // 1000 - 60, bid, ask)
        for days, collateral in MATCHED:
            await rows.match("rain", collateral * TOKEN, NOW_MS - int(days * DAY_MS))
        await rows.match("snow", 6 * TOKEN, NOW_MS - HOUR_MS)
        await rows.lock("rain", 30 * TOKEN)
        await rows.rest("ann", "rain", Side.BUY, 42, 100 * TOKEN)
        await rows.rest("bob", "rain", Side.SELL, 48, 50 * TOKEN)
        await rows.rest("bob", "rain", Side.BUY, 30, 1000 * TOKEN)


async def test_the_example_of_the_page_is_what_the_api_answers(
    database: Database, reader: Reader
) -> None:
    await fill(database)
    [market] = [each for each in await reader.get("/markets") if each["slug"] == "will-it-rain"]
    [event] = await reader.get("/events")
    answers = {
        **market,
        "openInterest": event["openInterest"],
        "outcomePrices": [float(price) for price in json.loads(market["outcomePrices"])],
        **{f"{field} of the event": value for field, value in event.items()},
    }
    example = documented()
    assert len(example) == 20
    for field, values in example.items():
        answered = answers[field] if isinstance(answers[field], list) else [answers[field]]
        is_rounded = field.startswith("competitive")
        assert answered == (pytest.approx(values, abs=5e-5) if is_rounded else values), field

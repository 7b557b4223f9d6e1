"""The example of the discovery API's page: each of its values is what the API answers."""

import json
import re
from pathlib import Path

import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, TOKEN

from foretell.domain.exchange.order import Side
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "discovery-api.md"
HOUR_MS = 3_600_000


def documented() -> dict[str, list[float]]:
    """Return the fields and values of the example's table."""
    text = PAGE.read_text().partition("For example, the book")[2]
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| ([\d., ]+) \|$", text, re.MULTILINE)
    return {field: [float(value) for value in values.split(", ")] for field, values in rows}


async def test_the_example_of_the_page_is_what_the_api_answers(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 42, 48, 44, volume_units=25 * TOKEN)
        await rows.match("rain", 5 * TOKEN, NOW_MS - 48 * HOUR_MS)
        await rows.match("rain", 20 * TOKEN, NOW_MS - 3 * HOUR_MS // 2)
        await rows.quoted_at(
            "rain", (NOW_MS - HOUR_MS) // 1000 - 60, 38, 42, volume_units=25 * TOKEN
        )
        await rows.lock("rain", 30 * TOKEN)
        await rows.rest("ann", "rain", Side.BUY, 42, 100 * TOKEN)
        await rows.rest("bob", "rain", Side.SELL, 48, 50 * TOKEN)
        await rows.rest("bob", "rain", Side.BUY, 30, 1000 * TOKEN)
    [market] = await reader.get("/markets")
    example = documented()
    assert len(example) == 10
    [market["openInterest"]] = [event["openInterest"] for event in market["events"]]
    market["outcomePrices"] = [float(price) for price in json.loads(market["outcomePrices"])]
    answered = {field: market[field] for field in example}
    assert answered.pop("outcomePrices") == example.pop("outcomePrices")
    assert answered.pop("competitive") == pytest.approx(example.pop("competitive")[0], abs=5e-5)
    assert answered == {field: value for field, [value] in example.items()}

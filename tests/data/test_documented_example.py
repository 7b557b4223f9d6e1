"""The example of the data API's page: each of its values is what the API answers."""

import re
from pathlib import Path

import pytest
from tests.rigs.read_apis import Reader, keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, TOKEN, an_address

from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import NO_POSITION, apply_all, purchase, sale
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
ANN = an_address("ann")


def documented() -> dict[str, float]:
    """Return the fields and values of the example's table."""
    text = PAGE.read_text().partition("For example, ann")[2]
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| ([\d.]+) \|$", text, re.MULTILINE)
    return {field: float(value) for field, value in rows}


async def test_the_example_of_the_page_is_what_the_api_answers(
    database: Database, reader: Reader
) -> None:
    bought, sold = purchase(10 * TOKEN, 4 * TOKEN, 0), sale(4 * TOKEN, 28 * TOKEN // 10, 0)
    held = apply_all(NO_POSITION, [bought, sold])
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 59, 61)
        await rows.buy("ann", "rain", bought.size_units, bought.money_units, timestamp_s=NOW_S)
        sizes = sold.size_units, sold.money_units
        await rows.buy("ann", "rain", *sizes, side=Side.SELL, timestamp_s=NOW_S)
        spent = {"bought_units": held.bought_units, "spent_units": held.spent_units}
        gained = {"realized_units": held.realized_units, "changed_at_s": NOW_S}
        await rows.hold("ann", "rain", held.size_units, held.cost_units, **spent, **gained)
    await keep_rankings(database)
    [position] = await reader.get("/positions", user=ANN)
    [ranked] = await reader.get("/v1/leaderboard", timePeriod="ALL")
    example = documented()
    assert len(example) == 9
    assert example == {field: {**position, **ranked}[field] for field in example}

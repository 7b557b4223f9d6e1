"""The example of the data API's page: each of its values is what the API answers."""

import re
from pathlib import Path

import pytest
from tests.rigs.read_apis import Reader, keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, TOKEN, an_address

from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import (
    NO_POSITION,
    TradePrice,
    apply_all,
    purchase,
    sale,
    split,
    transfer_in,
    transfer_out,
)
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
ANN, BOB = an_address("ann"), an_address("bob")


def documented(begin: str, end: str) -> dict[str, float]:
    """Return the fields and values of an example's table, which is between two texts of the page."""
    text = PAGE.read_text().partition(begin)[2].partition(end)[0]
    rows = re.findall(r"^\| ([\w ]+) \| [^|]+ \| (-?[\d.]+) \|$", text, re.MULTILINE)
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
    traded = await reader.get("/traded", user=ANN)
    volume = await reader.get("/volume", user=ANN)
    totals = {"traded": traded["traded"], "volume": float(volume["volume"])}
    example = documented("For example, ann", "For example, bob")
    assert len(example) == 11
    assert example == {field: {**position, **ranked, **totals}[field] for field in example}


async def test_split_transferred_and_closed_positions_are_as_the_page_computes_them(
    database: Database, reader: Reader
) -> None:
    traded = TradePrice(7 * TOKEN, 10 * TOKEN)
    yes = apply_all(
        NO_POSITION,
        [
            split(8 * TOKEN, is_yes=True),
            transfer_in(2 * TOKEN, traded),
            transfer_out(5 * TOKEN),
        ],
    )
    sold = sale(8 * TOKEN, 48 * TOKEN // 10, 0)
    no = apply_all(NO_POSITION, [split(8 * TOKEN, is_yes=False), sold])
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 30, 50, 35)
        for position, is_yes in ((yes, True), (no, False)):
            spent = {"bought_units": position.bought_units, "spent_units": position.spent_units}
            gained = {"realized_units": position.realized_units, "is_yes": is_yes}
            await rows.hold(
                "bob", "rain", position.size_units, position.cost_units, **spent, **gained
            )
    await keep_rankings(database)
    [held] = await reader.get("/positions", user=BOB)
    [closed] = await reader.get("/closed-positions", user=BOB)
    [win] = await reader.get("/v1/leaderboard/biggest-wins", timePeriod="ALL")
    example = documented("For example, bob", "He sold the 8 No")
    assert len(example) == 9
    assert example == {field: held[field] for field in example}
    of_win = {f"{field} of the win": win[field] for field in ("initialValue", "finalValue")}
    example = documented("He sold the 8 No", "And `curPrice`")
    assert len(example) == 5
    assert example == {field: {**closed, **of_win}[field] for field in example}


def documented_prices() -> list[tuple[str, float]]:
    """Return the payouts or the book, and the price, of each row of the table of prices."""
    text = PAGE.read_text().partition("And `curPrice` of Yes")[2]
    rows = re.findall(r"^\| ([^|]+) \| [^|]*\| ([\d.]+) \|$", text, re.MULTILINE)
    return [(known, float(price)) for known, price in rows]


@pytest.mark.parametrize(("known", "price"), documented_prices())
async def test_a_price_is_as_the_page_computes_it(
    database: Database, reader: Reader, known: str, price: float
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.hold("bob", "rain", TOKEN, TOKEN)
        if known.startswith("payouts"):
            yes, no = map(int, re.findall(r"\d+", known))
            await rows.resolve("rain", yes, no)
        else:
            ticks = [None if each == "none" else int(each[2:]) for each in known.split(", ")]
            await rows.quote("rain", *ticks)
    [position] = await reader.get("/positions", user=BOB)
    assert position["curPrice"] == price


def test_every_rule_of_a_price_has_an_example() -> None:
    assert len(documented_prices()) == 5

"""The example of the discovery API's page: each of its values is what the API answers."""

import json
import re
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from msgspec import UnsetType
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows, a_game_event_row, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, TOKEN

from foretell.discovery import responses
from foretell.domain.exchange.order import Side
from foretell.edge.codec import WireObject
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

Example = dict[str, list[float]]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "discovery-api.md"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MATCHED = ((1.5 / 24, 20), (2, 5), (20, 3), (200, 2), (400, 4))
"""How many days ago how much collateral was matched."""
QUOTED = ((1 / 24, 38, 42), (1, 29, 31), (7, 50, 54), (30, 20, 24))
"""How many days ago the book was at which prices."""


def documented(begin: str = "For example, the book", end: str = "A series of which") -> Example:
    """Return the fields and values of an example's table, which is between two places of the page."""
    text = PAGE.read_text().partition(begin)[2].partition(end)[0]
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
    found = await reader.get("/public-search", q=event["tags"][0]["slug"])
    answers = {
        **market,
        "openInterest": event["openInterest"],
        "event_count of the tag": found["tags"][0]["event_count"],
        "outcomePrices": [float(price) for price in json.loads(market["outcomePrices"])],
        **{f"{field} of the event": value for field, value in event.items()},
    }
    example = documented()
    assert len(example) == 25
    for field, values in example.items():
        answered = answers[field] if isinstance(answers[field], list) else [answers[field]]
        assert answered == values, field


async def test_the_volume_of_a_series_is_as_the_page_computes_it(
    database: Database, reader: Reader
) -> None:
    example = documented("A series of which", "And `outcomePrices`")
    async with database.writing() as tx:
        rows = Rows(tx)
        for name, units in (("first", 34 * TOKEN), ("second", 6 * TOKEN)):
            await rows.open(a_game_event_row(name))
            await rows.quote(f"{name} btts", 40, 42, 41, volume_units=units)
    [series] = await reader.get("/series")
    assert {"volume of the series": [series["volume"]]} == example


def documented_prices() -> list[tuple[str, list[float]]]:
    """Return the payouts or the book, and the prices, of each row of the table of prices."""
    text = PAGE.read_text().partition("And `outcomePrices` by its rules")[2]
    rows = re.findall(r"^\| ([^|]+) \| [^|]*\| ([\d., ]+) \|$", text, re.MULTILINE)
    return [(known, [float(price) for price in prices.split(", ")]) for known, prices in rows]


@pytest.mark.parametrize(("known", "prices"), documented_prices())
async def test_prices_are_as_the_page_computes_them(
    database: Database, reader: Reader, known: str, prices: list[float]
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        if known.startswith("payouts"):
            await rows.resolve("rain", *map(int, re.findall(r"\d+", known)))
        else:
            ticks = [None if each == "none" else int(each[2:]) for each in known.split(", ")]
            await rows.quote("rain", *ticks)
    [market] = await reader.get("/markets")
    assert [float(price) for price in json.loads(market["outcomePrices"])] == prices


def test_every_rule_of_prices_has_an_example() -> None:
    assert len(documented_prices()) == 4


WINDOWS = ("volume24hr", "volume1wk", "volume1mo", "volume1yr")
EXAMPLE_BY_FIGURE = {
    **{f"MarketResponse.{name}Clob": name for name in WINDOWS},
    **{f"MarketResponse.volume{form}": "volumeNum" for form in ("", "Clob")},
    **{f"MarketResponse.liquidity{form}": "liquidityNum" for form in ("", "Clob")},
    **{
        f"Event.{name}": f"{name} of the event"
        for name in (*WINDOWS, "volume", "liquidity", "competitive")
    },
    "Event.liquidityClob": "liquidity of the event",
    "SeriesResponse.volume": "volume of the series",
    "FoundTag.event_count": "event_count of the tag",
}
"""The examples of figures; the others have the names of their fields."""
TERMS = {
    *("orderPriceMinTickSize", "orderMinSize", "secondsDelay", "makerBaseFee", "takerBaseFee"),
    *("rewardsMinSize", "rewardsMaxSpread", "customLiveness", "line", "sourceMatchConfidence"),
    *("id", "gameId", "commentCount", "count", "totalResults"),
}
"""Numbers that somebody has set, that name a row, or that say how many rows there are."""
FIGURES_IN_TEXT = {"outcomePrices", "volume", "liquidity"}
NUMBERS = {Decimal, int, float, Decimal | UnsetType, int | UnsetType, float | UnsetType}


def figures() -> list[tuple[str, str]]:
    """Return every figure in the responses: its record, and its field with those of the record's base."""
    kinds = [
        kind
        for kind in vars(responses).values()
        if isinstance(kind, type) and issubclass(kind, WireObject) and not kind.__subclasses__()
    ]
    return [
        (kind.__name__, field.encode_name)
        for kind in kinds
        for field in msgspec.structs.fields(kind)
        if field.encode_name not in TERMS
        and (field.encode_name in FIGURES_IN_TEXT or field.type in NUMBERS)
    ]


@pytest.mark.parametrize(("record", "field"), figures())
def test_every_figure_of_a_response_has_an_example(record: str, field: str) -> None:
    examples = documented() | documented("A series of which", "And `outcomePrices`")
    assert EXAMPLE_BY_FIGURE.get(f"{record}.{field}", field) in examples


WITHOUT_FORMULA = {
    *("closed", "closedTime", "acceptingOrders", "secondsDelay", "umaResolutionStatus"),
    *("umaResolutionStatuses", "resolutionSteps", "negRiskMarketID", "negRiskRequestID"),
    *("orderPriceMinTickSize", "orderMinSize", "startDate", "createdAt", "image", "icon"),
    *("creator", "submitted_by", "createdBy"),
}
"""What the page defines that is no number, or a term that somebody has set."""
EXAMPLE_BY_DEFINITION = {
    "volume": "volumeNum",
    "liquidity": "liquidityNum",
    **{name: f"volume{name}" for name in ("1wk", "1mo", "1yr")},
    **{f"{name}…": f"{name}PriceChange" for name in ("oneDay", "oneWeek", "oneMonth")},
}


def definitions() -> list[str]:
    """Return the fields that the page's table of definitions names."""
    text = PAGE.read_text().partition("| field | definition |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| ([^|]+) \| ", text, re.MULTILINE)
    return [field for fields in named for field in fields.split(", ") if field != "---"]


@pytest.mark.parametrize("field", definitions())
def test_every_documented_formula_has_an_example(field: str) -> None:
    assert field in WITHOUT_FORMULA or EXAMPLE_BY_DEFINITION.get(field, field) in documented()

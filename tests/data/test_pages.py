"""The calls of each page that the reference names: each is answered, and has what the page shows."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.data.test_both_databases import a_reader, fill
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows
from tests.rigs.trading import a_rig_on
from tests.rigs.values import NOW_S, a_word, an_address, an_asset

from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
CALLS_MAX: Final = {"a market": 6, "a portfolio": 4, "a leaderboard": 1, "a search": 1}
VALUES: Final = {
    "market": a_word("b"),
    "token": an_asset(is_yes=True, market="b"),
    "user": an_address("alice"),
    "q": "apple",
}
SHOWN: Final[dict[str, frozenset[str]]] = {
    "/book": frozenset({"bids", "asks", "last_trade_price"}),
    "/prices-history": frozenset({"history"}),
    "/trades": frozenset({"title", "slug", "eventSlug", "outcome", "name"}),
    "/positions": frozenset({"title", "slug", "eventSlug", "outcome", "curPrice", "cashPnl"}),
    "/closed-positions": frozenset({"title", "slug", "eventSlug", "outcome", "realizedPnl"}),
    "/activity": frozenset({"title", "slug", "eventSlug", "name"}),
    "/v1/leaderboard": frozenset({"userName", "profileImage", "vol", "pnl"}),
}


def pages() -> dict[str, list[tuple[str, str]]]:
    """Return the calls of each page: the API and the path."""
    text = PAGE.read_text().partition("## Pages")[2].partition("## Records")[0]
    found: dict[str, list[tuple[str, str]]] = {}
    for page, calls in re.findall(r"^\| (a \w+) \| (.+) \|$", text, re.MULTILINE):
        found[page] = [
            (api, path)
            for api, listed in re.findall(r"(\w+) ((?:`[^`]+`(?:, )?)+)", calls)
            for path in re.findall(r"`([^`]+)`", listed)
        ]
    return found


def test_a_page_needs_few_calls() -> None:
    assert {page: len(calls) for page, calls in pages().items()} == CALLS_MAX
    assert "six for a market, four for a\nportfolio, one each" in PAGE.read_text()


async def test_every_call_of_a_page_answers_with_what_its_rows_show(
    fresh_database: Database, tmp_path: Path
) -> None:
    await fill(fresh_database)
    async with fresh_database.writing() as tx:
        await Rows(tx).quoted_at("b", NOW_S - 60, 30, 40)
    readers = {
        api: a_reader(fresh_database, is_data=api == "data") for api in ("data", "discovery")
    }
    market = (await readers["discovery"].get("/markets", conditionId=VALUES["market"]))[0]
    async with a_rig_on(tmp_path / "journal", fresh_database) as rig:
        await rig.open_in_memory("b")
        readers["trading"] = Reader(rig.app)
        for api, path in [call for calls in pages().values() for call in calls]:
            answer: Any = await readers[api].get(path.format(**VALUES, slug=market["slug"]))
            rows = answer if isinstance(answer, list) else [answer]
            assert rows, path
            assert SHOWN.get(path.partition("?")[0], frozenset()) <= rows[0].keys(), path
            assert rows[0].get("history") != [], path


async def test_every_market_has_a_category_with_a_leaderboard(fresh_database: Database) -> None:
    await fill(fresh_database)
    data, discovery = (a_reader(fresh_database, is_data=each) for each in (True, False))
    for event in await discovery.get("/events"):
        category = event["tags"][0]["slug"]
        assert await data.get("/v1/leaderboard", category=category, timePeriod="ALL")

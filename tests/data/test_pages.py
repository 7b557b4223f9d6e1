"""The calls of each page that the reference names: each is answered, and has what the page shows."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.data.test_both_databases import a_reader, fill
from tests.rigs.values import a_word, an_address

from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
CALLS_MAX: Final = {"a market": 5, "a portfolio": 4, "a leaderboard": 1, "a search": 1}
VALUES: Final = {"market": a_word("b"), "user": an_address("alice"), "q": "apple"}
SHOWN: Final[dict[str, frozenset[str]]] = {
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


async def test_every_call_of_a_page_answers_with_what_its_rows_show(
    fresh_database: Database,
) -> None:
    await fill(fresh_database)
    data, discovery = (a_reader(fresh_database, is_data=each) for each in (True, False))
    market = (await discovery.get("/markets", conditionId=VALUES["market"]))[0]
    asked = [call for calls in pages().values() for call in calls if call[0] != "trading"]
    for api, path in asked:
        reader = data if api == "data" else discovery
        answer: Any = await reader.get(path.format(**VALUES, slug=market["slug"]))
        rows = answer if isinstance(answer, list) else [answer]
        assert rows, path
        assert SHOWN.get(path.partition("?")[0], frozenset()) <= rows[0].keys(), path


async def test_every_market_has_a_category_with_a_leaderboard(fresh_database: Database) -> None:
    await fill(fresh_database)
    data, discovery = (a_reader(fresh_database, is_data=each) for each in (True, False))
    for event in await discovery.get("/events"):
        category = event["tags"][0]["slug"]
        assert await data.get("/v1/leaderboard", category=category, timePeriod="ALL")

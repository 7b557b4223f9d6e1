"""Public answers of the tables name their content; those of memory, which change with each order, do not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from litestar.handlers import HTTPRouteHandler
from tests.rigs.trading import Trader, TradingRig, a_rig_on
from tests.rigs.values import a_buy, a_sell, a_word, an_asset, an_open_market

from foretell.domain.portfolio.price_history import INTERVALS_S
from foretell.edge.documents.description import description_of
from foretell.edge.read_answers import ASKED_AGAIN
from foretell.store.database import Database
from foretell.trading.books.market_pages import PAGE_LIMITS
from foretell.trading.routes.app import ROUTES

pytestmark = pytest.mark.anyio

TOKEN = an_asset(is_yes=True)
IDS = {
    "token_id": TOKEN,
    "condition_id": an_open_market("market").condition_id,
    "builder_code": a_word("builder"),
}
PAGES = {"/markets", "/simplified-markets", "/sampling-markets", "/sampling-simplified-markets"}
FROM_TABLES = {
    *PAGES,
    "/prices-history",
    "/markets/{condition_id:str}",
    "/clob-markets/{condition_id:str}",
    "/live-activity/events/{condition_id:str}",
    "/markets/live-activity/{condition_id:str}",
    "/markets-by-token/{token_id:str}",
    "/fees/builder-fees/{builder_code:str}",
    "/builder/trades",
}
QUERIES = {
    "/prices-history": {"market": TOKEN, "interval": "1h"},
    "/builder/trades": {"builder_code": IDS["builder_code"]},
}
FROM_MEMORY = ["/book", "/midpoint", "/spread", "/tick-size", "/neg-risk", "/last-trade-price"]


@pytest.fixture
async def traders(each_database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Trader, Trader]]:
    async with (
        Database(each_database_url) as database,
        a_rig_on(tmp_path / "journal", database) as rig,
    ):
        await rig.open("market", "alice", "bob")
        yield await rig.trader("alice"), await rig.trader("bob")


async def trade(traders: tuple[Trader, Trader], salt: str) -> None:
    alice, bob = traders
    await alice.placed(a_buy("alice", salt=salt))
    await bob.placed(a_sell("bob", salt=salt))
    await alice.rig.settle_tables()


def url_of(path: str) -> str:
    return path.replace(":str}", "}").format_map(IDS)


def test_the_public_reads_of_tables_have_tags() -> None:
    handlers = [each for each in ROUTES if isinstance(each, HTTPRouteHandler)]
    described = [(each, description_of(each)) for each in handlers if "description" in each.opt]
    tagged = {path for each, about in described if about.answer.is_tagged for path in each.paths}
    assert tagged == FROM_TABLES


@pytest.mark.parametrize("path", sorted(FROM_TABLES))
async def test_data_an_answer_of_the_tables_has_a_tag_while_it_stays_the_same(
    traders: tuple[Trader, Trader], path: str
) -> None:
    await trade(traders, "1")
    http, url, query = traders[0].rig.client, url_of(path), QUERIES.get(path, {})
    first = await http.get(url, params=query)
    kept = f"public, max-age={PAGE_LIMITS.kept_s}" if path in PAGES else ASKED_AGAIN
    assert (first.status_code, first.headers["cache-control"]) == (200, kept), first.text
    again = await http.get(url, params=query, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("interval", INTERVALS_S)
async def test_data_the_history_of_an_interval_asked_again_within_the_minute_is_304(
    traders: tuple[Trader, Trader], interval: str
) -> None:
    await trade(traders, "1")
    rig, query = traders[0].rig, {"market": TOKEN, "interval": interval}
    rig.clock.move(1_000)
    first = await rig.client.get("/prices-history", params=query)
    assert first.json()["history"]
    tag = {"if-none-match": first.headers["etag"]}
    rig.clock.move(59_000)
    again = await rig.client.get("/prices-history", params=query, headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    rig.clock.move(1_000)
    later = await rig.client.get("/prices-history", params=query, headers=tag)
    assert later.status_code == 200
    assert later.json()["history"][-1]["t"] == first.json()["history"][-1]["t"] + 60


async def test_data_a_price_that_has_changed_within_the_minute_has_another_tag(
    traders: tuple[Trader, Trader],
) -> None:
    await trade(traders, "1")
    rig, query = traders[0].rig, {"market": TOKEN, "interval": "1h"}
    rig.clock.move(1_000)
    first = await rig.client.get("/prices-history", params=query)
    rig.clock.move(20_000)
    await traders[0].placed(a_buy("alice", price_ticks=30, salt="2"))
    await traders[1].placed(a_sell("bob", price_ticks=80, salt="2"))
    await rig.settle_tables()
    tag = {"if-none-match": first.headers["etag"]}
    changed = await rig.client.get("/prices-history", params=query, headers=tag)
    assert changed.status_code == 200
    assert changed.json()["history"][-1] == {"t": first.json()["history"][-1]["t"], "p": 0.55}


async def test_data_a_price_history_that_has_grown_has_another_tag(
    traders: tuple[Trader, Trader],
) -> None:
    await trade(traders, "1")
    rig, query = traders[0].rig, {"market": TOKEN, "interval": "1h"}
    first = await rig.client.get("/prices-history", params=query)
    rig.clock.move(120_000)
    await trade(traders, "2")
    tag = {"if-none-match": first.headers["etag"]}
    grown = await rig.client.get("/prices-history", params=query, headers=tag)
    assert grown.status_code == 200
    assert grown.headers["etag"] != first.headers["etag"]
    assert len(grown.json()["history"]) > len(first.json()["history"])


@pytest.mark.parametrize("path", FROM_MEMORY)
async def test_an_answer_from_memory_has_no_tag(traders: tuple[Trader, Trader], path: str) -> None:
    await trade(traders, "1")
    rig: TradingRig = traders[0].rig
    answer = await rig.client.get(path, params={"token_id": TOKEN})
    assert "etag" not in answer.headers
    assert "cache-control" not in answer.headers

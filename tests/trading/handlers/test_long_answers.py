"""Answers that take long to compute are computed in parts, between which the loop takes orders."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.trading import TradingRig, a_rig_on
from tests.rigs.values import NOW_MS, NOW_S, a_buy, a_sell, an_asset

from foretell.edge.codec import encode_json
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.queries import market_listings
from foretell.trading.books.market_pages import PAGE_LIMITS, MarketPages
from foretell.trading.handlers import markets, price_history
from foretell.trading.handlers.markets import MARKETS_PER_PAGE
from foretell.trading.handlers.price_history import (
    POINTS_PER_PART,
    BatchHistoryRecord,
    HistoryRecord,
    PricePoint,
)
from foretell.trading.wire.markets import MarketRecord, SimplifiedMarketRecord, market_record
from foretell.trading.wire.pages import Page

pytestmark = pytest.mark.anyio

YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
POINTS = 1000
BATCH = {"markets": [YES, NO], "start_ts": NOW_S - 60 * (POINTS - 1), "end_ts": NOW_S}
HISTORY: dict[str, str | int] = {
    "market": YES,
    "startTs": NOW_S - 60 * (POINTS - 1),
    "endTs": NOW_S,
}
LISTS: dict[str, Any] = {
    "/markets": Page[MarketRecord],
    "/simplified-markets": Page[SimplifiedMarketRecord],
    "/sampling-markets": Page[MarketRecord],
    "/sampling-simplified-markets": Page[SimplifiedMarketRecord],
}


@pytest.fixture
async def rig(each_database_url: str, tmp_path: Path) -> AsyncIterator[TradingRig]:
    async with (
        Database(each_database_url) as database,
        a_rig_on(tmp_path / "journal", database) as rig,
    ):
        await rig.open("market", "alice", "bob")
        yield rig


async def list_many(rig: TradingRig, count: int) -> None:
    """List markets beside the one that is open."""
    rows = [a_market_row(f"m{number}") for number in range(count)]
    async with rig.context.database.writing() as tx:
        await record_event(tx, an_event_row("many", *rows), NOW_MS)


async def quote_each_minute(rig: TradingRig) -> None:
    """Store a price for each minute that a history of the largest length shows, none for some."""
    async with rig.context.database.writing() as tx:
        rows = Rows(tx)
        for minute in range(POINTS):
            bid = None if minute % 7 == 3 else 1 + minute % 40
            await rows.quoted_at("market", NOW_S - 60 * (minute + 1), bid, 60, None)


class Counted:
    """A function that counts how often it was called, in all and between two turns of the loop."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.count = 0
        self.between_turns = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.function(*args, **kwargs)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the turns of the loop during a block."""

        async def watch() -> None:
            while True:
                before = self.count
                await asyncio.sleep(0)
                self.between_turns = max(self.between_turns, self.count - before)

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()


async def test_a_page_leaves_the_loop_to_others_between_its_parts(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await list_many(rig, MARKETS_PER_PAGE)
    loaded, rendered = Counted(market_listings._listing), Counted(market_record)
    monkeypatch.setattr(market_listings, "_listing", loaded)
    with loaded.watched(), rendered.watched():
        await markets.market_page(rig.context, 0, rendered, is_sampling=False)
    assert rendered.count == MARKETS_PER_PAGE
    assert rendered.between_turns == PAGE_LIMITS.markets_per_part <= MARKETS_PER_PAGE / 20
    assert loaded.between_turns == PAGE_LIMITS.markets_per_part + 1


@pytest.mark.parametrize("path", ["/prices-history", "/batch-prices-history"])
async def test_a_history_leaves_the_loop_to_others_between_its_parts(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    await quote_each_minute(rig)
    made = Counted(PricePoint)
    monkeypatch.setattr(price_history, "PricePoint", made)
    with made.watched():
        await read(rig, path)
    assert made.count > 3 * POINTS_PER_PART
    assert 0 < made.between_turns <= POINTS_PER_PART


async def test_requests_for_a_page_at_once_read_it_once(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await list_many(rig, 3)
    loading = Counted(market_listings.load_market_listings)
    monkeypatch.setattr(markets, "load_market_listings", loading)
    answers = await asyncio.gather(*(rig.client.get("/markets") for _ in range(5)))
    assert {(each.status_code, each.content) for each in answers} == {(200, answers[0].content)}
    assert loading.count == 1
    await rig.client.get("/simplified-markets")
    await rig.client.get("/markets", params={"next_cursor": "MQ=="})
    assert loading.count == 3


async def test_a_page_has_the_prices_of_its_render_until_its_time_is_over(rig: TradingRig) -> None:
    now_s = [0.0]
    pages = MarketPages(now_s=lambda: now_s[0])
    object.__setattr__(rig.context, "market_pages", pages)

    async def price() -> float:
        (market,) = (await rig.client.get("/markets")).json()["data"]
        return float(market["tokens"][0]["price"])

    assert await price() == 0.5
    await rig.rest(a_buy("alice", price_ticks=40))
    await rig.rest(a_sell("bob", price_ticks=45))
    assert await price() == 0.5
    now_s[0] = float(PAGE_LIMITS.kept_s)
    assert await price() == 0.425


async def test_a_page_of_any_parts_has_the_bytes_of_the_whole(rig: TradingRig) -> None:
    await list_many(rig, 6)
    for path, kind in LISTS.items():
        contents = []
        for per_part in (1, 3, 1000):
            limits = PAGE_LIMITS._replace(markets_per_part=per_part)
            object.__setattr__(rig.context, "market_pages", MarketPages(limits))
            for cursor, count in (("", 7), ("MQ==", 6), ("Nw==", 0)):
                answer = await rig.client.get(path, params={"next_cursor": cursor})
                page = msgspec.json.decode(answer.content, type=kind)
                assert (page.count, len(page.data), page.next_cursor) == (count, count, "LTE=")
                assert encode_json(page) == answer.content
                contents.append(answer.content)
        assert contents == contents[:3] * 3


@pytest.mark.parametrize("path", ["/prices-history", "/batch-prices-history"])
async def test_a_history_of_any_parts_has_the_bytes_of_the_whole(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    await quote_each_minute(rig)
    contents = []
    for points in (POINTS + 1, POINTS_PER_PART, 7):
        monkeypatch.setattr(price_history, "POINTS_PER_PART", points)
        contents.append(await read(rig, path))
    assert contents[1:] == contents[:1] * 2
    kind: Any = HistoryRecord if path == "/prices-history" else BatchHistoryRecord
    record = msgspec.json.decode(contents[0], type=kind)
    assert encode_json(record) == contents[0]
    points = record.history if kind is HistoryRecord else record.history[NO]
    assert len(points) > 3 * POINTS_PER_PART


async def read(rig: TradingRig, path: str) -> bytes:
    """Return the largest history of a token, or of both."""
    if path == "/prices-history":
        answer = await rig.client.get(path, params=HISTORY)
    else:
        answer = await rig.client.post(path, json=BATCH)
    assert answer.status_code == 200, answer.text
    return answer.content

"""A market that comes to trade at the edge gets a finer tick, and everyone is told at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.domain.exchange.digest import digest
from tests.rigs.applications import an_app
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_word,
    an_asset,
    an_open_market,
    an_order_id,
    some_funds,
    some_rules,
)
from tests.trading.rig import (
    SEGMENT_BYTES,
    Clock,
    Trader,
    TradingRig,
    a_rig,
    client_of,
    numbered_uuids,
    recover_here,
)

from foretell.app.engine_sockets import UNIX, connect, listen
from foretell.domain.exchange.commands import ChangeTick, Command, ResolveMarket
from foretell.domain.exchange.effects import Effect, TickChanged
from foretell.domain.exchange.snapshot import encode_state
from foretell.domain.exchange.trade import trade_id_of
from foretell.engine.protocol.client import RemoteShard
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.protocol.router import Shards
from foretell.engine.server import EngineServer
from foretell.engine.writer import tick_refiner
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.tick_refiner import TickRefiner
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Snapshot
from foretell.runtime.loops import run_together
from foretell.store.trading.trades import load_quotes, load_trades_by_id
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.context import build_context
from foretell.trading.routes.app import build_app

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
MARKET = a_word("market")
SOON_S = 10.0
TOKEN_OF_LINES = b"the token of this installation"

AT_THE_EDGE: list[Command] = [
    a_placing(a_sell("bob", price_ticks=97)),
    a_placing(a_buy("alice", price_ticks=97)),
]
TRADE_ID = trade_id_of(an_order_id(a_buy("alice", price_ticks=97)), 0)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.002)


class Watched:
    """An engine, who watches its ticks, and what the engine told."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
        self.watch = TickRefiner(self.engine)
        self.effects: list[Effect] = []
        self.engine.subscribe(self.watch.on_committed)
        self.engine.subscribe(lambda committed: self.effects.extend(committed.effects))

    @property
    def ticks_per_one(self) -> int:
        return self.engine.state.market_by_id[MARKET].rules.ticks_per_one

    @property
    def changes(self) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, TickChanged)]

    async def tell(self, *commands: Command) -> None:
        for command in commands:
            await self.engine.submit(command)

    async def open(self) -> None:
        await self.tell(an_open_market(), some_funds("alice", "bob"))

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Change ticks until the block ends."""
        running = asyncio.create_task(self.watch.run())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@contextlib.asynccontextmanager
async def started(folder: Path) -> AsyncIterator[Watched]:
    watched = Watched(folder)
    await watched.engine.start()
    yield watched
    await watched.engine.close()


async def test_a_trade_at_the_edge_makes_the_tick_finer_once(tmp_path: Path) -> None:
    async with started(tmp_path) as watched, watched.watching():
        await watched.open()
        await watched.tell(*AT_THE_EDGE)
        await until(lambda: bool(watched.changes))
        more = (a_sell("bob", price_ticks=3, salt="9"), a_buy("alice", price_ticks=3, salt="9"))
        await watched.tell(*map(a_placing, more))
        await asyncio.sleep(0.02)
        assert watched.changes == [TickChanged(MARKET, 100, 1_000, NOW_MS)]
        assert watched.engine.sequence == 7


async def test_a_trade_away_from_the_edge_changes_no_tick(tmp_path: Path) -> None:
    async with started(tmp_path) as watched, watched.watching():
        await watched.open()
        await watched.tell(
            a_placing(a_sell("bob", price_ticks=96)), a_placing(a_buy("alice", price_ticks=96))
        )
        await asyncio.sleep(0.02)
        assert watched.changes == []
        assert watched.ticks_per_one == 100


async def test_a_trade_of_the_other_token_counts_alike(tmp_path: Path) -> None:
    async with started(tmp_path) as watched, watched.watching():
        await watched.open()
        await watched.tell(
            a_placing(a_buy("bob", price_ticks=3)),
            a_placing(a_buy("alice", price_ticks=97, is_yes=False)),
        )
        await until(lambda: watched.ticks_per_one == 1_000)


async def test_a_market_that_ended_meanwhile_keeps_its_tick(tmp_path: Path) -> None:
    async with started(tmp_path) as watched:
        await watched.open()
        await watched.tell(*AT_THE_EDGE, ResolveMarket(NOW_MS, MARKET))
        async with watched.watching():
            await until(lambda: not watched.watch._ticks_by_id)
        assert watched.ticks_per_one == 100


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["journal", "snapshot"])
async def test_a_change_that_a_crash_came_before_is_made_up_for(
    tmp_path: Path, *, is_snapshot: bool
) -> None:
    async with started(tmp_path) as watched:
        await watched.open()
        await watched.tell(*AT_THE_EDGE)
        if is_snapshot:
            await snapshot_now(watched.engine)
    async with started(tmp_path) as watched, watched.watching():
        assert watched.ticks_per_one == 100
        await until(lambda: bool(watched.changes))
        assert watched.ticks_per_one == 1_000


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["journal", "snapshot"])
async def test_a_start_after_the_change_has_the_finer_tick_by_the_journal_alone(
    tmp_path: Path, *, is_snapshot: bool
) -> None:
    async with started(tmp_path) as watched:
        await watched.open()
        await watched.tell(*AT_THE_EDGE, ChangeTick(NOW_MS, MARKET, 1_000))
        before = digest(watched.engine.state)
        if is_snapshot:
            await snapshot_now(watched.engine)
    async with started(tmp_path) as watched:
        assert digest(watched.engine.state) == before
        sequence = watched.engine.sequence
        async with watched.watching():
            await until(lambda: not watched.watch._ticks_by_id)
        assert watched.engine.sequence == sequence


async def snapshot_now(engine: Engine) -> None:
    await engine._journal.keep_snapshot(Snapshot(engine.sequence, encode_state(engine.state)))


async def test_what_cannot_be_changed_now_is_changed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_refiner, "RETRY_S", 0.005)
    async with started(tmp_path) as watched:
        await watched.open()
        await watched.tell(*AT_THE_EDGE)
        async with watched.watching():
            with monkeypatch.context() as stopping:
                stopping.setattr(watched.engine, "_is_ready", False)
                await asyncio.sleep(0.02)
                assert watched.ticks_per_one == 100
            await until(lambda: watched.ticks_per_one == 1_000)


@pytest.fixture
async def edge(rig: TradingRig) -> TradingRig:
    """The venue after its market traded at 0.97 and its host saw that."""
    running = asyncio.create_task(run_together([rig.host.loops()["ticks"]]))
    await rig.rest(a_buy("carol", price_ticks=3))
    await rig.rest(a_sell("bob", price_ticks=97))
    await rig.rest(a_buy("alice", price_ticks=97))
    market = rig.context.books.market_by_id[MARKET]
    await until(lambda: market.ticks_per_one == 1_000)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return rig


async def get(rig: TradingRig, path: str, **query: Any) -> Any:
    response = await rig.client.get(path, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def test_every_route_tells_the_finer_tick_and_the_same_prices(edge: TradingRig) -> None:
    assert await get(edge, "/tick-size", token_id=YES) == {"minimum_tick_size": 0.001}
    assert await get(edge, f"/tick-size/{NO}") == {"minimum_tick_size": 0.001}
    book = await get(edge, "/book", token_id=YES)
    assert (book["tick_size"], book["bids"]) == ("0.001", [{"price": "0.03", "size": "10"}])
    assert book["last_trade_price"] == "0.97"
    assert await get(edge, "/midpoint", token_id=YES) == {"mid": "0.515"}
    assert (await get(edge, "/last-trade-price", token_id=NO))["price"] == "0.03"
    (listed,) = (await get(edge, "/markets"))["data"]
    assert listed["minimum_tick_size"] == 0.001
    assert listed == await get(edge, f"/markets/{MARKET}")
    assert (await get(edge, f"/clob-markets/{MARKET}"))["mts"] == 0.001


async def test_a_price_between_two_old_ticks_is_taken_from_then_on(
    rig: TradingRig, carol: Trader
) -> None:
    order = a_buy("carol", price_ticks=35, ticks_per_one=1_000)
    refused = await carol.place(order)
    assert (refused.status_code, refused.json()["code"]) == (400, "price_off_tick")
    await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))
    assert (await carol.placed(order))["status"] == "live"
    assert (await get(rig, "/book", token_id=YES))["bids"] == [{"price": "0.035", "size": "10"}]
    finer = a_buy("carol", price_ticks=355, ticks_per_one=10_000)
    words = (await carol.place(finer)).json()["error"]
    assert words.endswith("Price (0.0355) breaks minimum tick size rule: 0.001")


async def test_an_order_signed_for_the_old_tick_is_taken_and_canceled_as_before(
    rig: TradingRig, carol: Trader
) -> None:
    await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))
    placed = await carol.placed(a_buy("carol", price_ticks=40))
    (order,) = (await carol.get("/data/orders"))["data"]
    assert (order["price"], order["original_size"]) == ("0.4", "10")
    canceled = await carol.send("DELETE", "/order", {"orderID": placed["orderID"]})
    assert canceled.json()["canceled"] == [placed["orderID"]]


@pytest.fixture
async def carol(rig: TradingRig) -> Trader:
    return await rig.trader("carol")


async def test_an_order_that_was_judged_before_the_change_is_placed_after_it(
    rig: TradingRig, carol: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is durable while the order waits for its signer, and the engine reads its terms."""
    check = rig.context.nonces.check

    async def change_first(exchange: Any, order: Any) -> None:
        await check(exchange, order)
        await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))

    monkeypatch.setattr(type(rig.context.nonces), "check", staticmethod(change_first))
    await carol.placed(a_buy("carol", price_ticks=40))
    assert (await get(rig, "/book", token_id=YES))["bids"] == [{"price": "0.4", "size": "10"}]


class Beside:
    """What serves clients in a process of its own, over the socket of a venue's engine."""

    def __init__(self, rig: TradingRig, path: Path) -> None:
        async def find() -> str:
            return f"{UNIX}{path}"

        self.shard = RemoteShard(partial(connect, find), TOKEN_OF_LINES, self)
        self.context = build_context(
            deployment=rig.context.deployment,
            database=rig.context.database,
            shards=Shards([self.shard]),
            key_ring=rig.context.key_ring,
            chain=ChainView(rig.chain.fetch_nonce, rig.chain.fetch_has_code),
            blob_base_url=rig.context.blob_base_url,
            recover=recover_here,
            now_ms=rig.clock.now_ms,
            new_uuid=numbered_uuids(),
        )
        self.client = client_of(an_app(build_app, self.context))

    def begin(self) -> None:
        self.context.begin(lambda _: True)

    def on_committed(self, committed: CommittedCommand) -> None:
        self.context.on_committed(committed)


@pytest.fixture
async def beside(rig: TradingRig, tmp_path: Path) -> AsyncIterator[Beside]:
    server = EngineServer(TOKEN_OF_LINES)
    server.open(rig.host, rig.host.engine)
    listening = await listen(server.connection, tmp_path / "socket", None)
    beside = Beside(rig, tmp_path / "socket")
    running = asyncio.create_task(beside.shard.run())
    async with asyncio.timeout(SOON_S):
        await beside.shard.begun.wait()
    yield beside
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await beside.client.aclose()
    await listening.close()


async def test_a_process_that_serves_clients_judges_by_the_finer_tick_once_it_is_told(
    rig: TradingRig, beside: Beside, carol: Trader
) -> None:
    finer = carol.body(a_buy("carol", price_ticks=35, ticks_per_one=1_000))
    refused = await carol.send("POST", "/order", finer, client=beside.client)
    assert refused.json()["code"] == "price_off_tick"
    await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))
    market = beside.context.books.market_by_id[MARKET]
    await until(lambda: market.ticks_per_one == 1_000)
    placed = await carol.send("POST", "/order", finer, client=beside.client)
    assert placed.json()["status"] == "live"
    answer = await beside.client.get("/tick-size", params={"token_id": YES})
    assert answer.json() == {"minimum_tick_size": 0.001}


async def test_an_order_from_a_process_that_was_not_told_yet_is_placed_at_its_price(
    rig: TradingRig, beside: Beside, carol: Trader
) -> None:
    """The engine's word is on its way while the order is, and the order overtakes it."""
    await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))
    market = beside.context.books.market_by_id[MARKET]
    await until(lambda: market.ticks_per_one == 1_000)
    market.rules = some_rules(100)
    body = carol.body(a_buy("carol", price_ticks=40))
    placed = await carol.send("POST", "/order", body, client=beside.client)
    assert placed.json()["status"] == "live"
    assert (await get(rig, "/book", token_id=YES))["bids"] == [{"price": "0.4", "size": "10"}]


async def test_the_tables_keep_the_ticks_of_each_row_and_quote_in_those_of_now(
    edge: TradingRig,
) -> None:
    await edge.rest(a_sell("bob", 971, ticks_per_one=1_000), market=FINE)
    taking = a_buy("alice", 971, ticks_per_one=1_000)
    await edge.rest(taking, market=FINE)
    await edge.settle_tables()
    later_id = trade_id_of(an_order_id(taking), 0)
    async with edge.context.database.reading() as tx:
        quote = (await load_quotes(tx))[MARKET]
        rows = {
            row.trade.trade_id: (row.trade.ticks_per_one, row.trade.fills[0].price_ticks)
            for row in await load_trades_by_id(tx, [TRADE_ID, later_id])
        }
    assert rows == {TRADE_ID: (100, 97), later_id: (1_000, 971)}
    assert (quote.ticks_per_one, quote.best_bid_ticks, quote.last_price_ticks) == (1_000, 30, 971)


FINE = an_open_market(rules=some_rules(1_000))


async def test_a_restart_shows_old_and_new_trades_at_their_prices(
    database_file: Path, tmp_path: Path
) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market", "alice", "bob")
        await rig.submit(*AT_THE_EDGE, ChangeTick(NOW_MS, MARKET, 1_000))
        await rig.settle_tables()
        alice = await rig.trader("alice")
        book = await get(rig, "/book", token_id=YES)
        trades = (await alice.get("/data/trades"))["data"]
        await snapshot_now(rig.host.engine)
    async with a_rig(tmp_path / "journal", database_file) as rig:
        alice.rig = rig
        assert await get(rig, "/book", token_id=YES) == book
        assert (await alice.get("/data/trades"))["data"] == trades
        assert trades[0]["maker_orders"][0]["price"] == trades[0]["price"] == "0.97"
        (unsettled,) = rig.context.streams.user.unsettled_trades.values()
        assert unsettled.row.trade.ticks_per_one == 100
        assert await get(rig, "/tick-size", token_id=YES) == {"minimum_tick_size": 0.001}


async def test_the_history_of_a_price_goes_on_over_the_change(edge: TradingRig) -> None:
    edge.clock.move(60_000)
    await edge.submit(a_placing(a_sell("bob", 50, 5 * TOKEN), at_ms=edge.clock.at_ms))
    await edge.settle_tables()
    edge.clock.move(60_000)
    history = (await get(edge, "/prices-history", market=YES, interval="1h"))["history"]
    assert [point["p"] for point in history] == [0.97, 0.265]

"""A market that trades near 0 or 1 gets a finer tick, which is published at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.engine.rig import INSTALLATION_TOKEN, SOON_S, until
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.trading import Trader, TradingRig, a_rig, client_of, recover_here
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
    numbered_uuids,
    some_funds,
    some_rules,
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

AT_THE_EDGE: list[Command] = [
    a_placing(a_sell("bob", price_ticks=97)),
    a_placing(a_buy("alice", price_ticks=97)),
]
TRADE_ID = trade_id_of(an_order_id(a_buy("alice", price_ticks=97)), 0)


class RefinedEngine:
    """An engine with a tick refiner, and the effects that it published."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
        self.refiner = TickRefiner(self.engine)
        self.effects: list[Effect] = []
        self.engine.subscribe(self.refiner.on_committed)
        self.engine.subscribe(lambda committed: self.effects.extend(committed.effects))

    @property
    def ticks_per_one(self) -> int:
        return self.engine.state.market_by_id[MARKET].rules.ticks_per_one

    @property
    def changes(self) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, TickChanged)]

    async def submit(self, *commands: Command) -> None:
        for command in commands:
            await self.engine.submit(command)

    async def open(self) -> None:
        await self.submit(an_open_market(), some_funds("alice", "bob"))

    @contextlib.asynccontextmanager
    async def refining(self) -> AsyncIterator[None]:
        """Change ticks until the block ends."""
        running = asyncio.create_task(self.refiner.run())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@contextlib.asynccontextmanager
async def started(folder: Path) -> AsyncIterator[RefinedEngine]:
    refined = RefinedEngine(folder)
    await refined.engine.start()
    yield refined
    await refined.engine.close()


async def test_a_trade_at_the_edge_makes_the_tick_finer_once(tmp_path: Path) -> None:
    async with started(tmp_path) as refined, refined.refining():
        await refined.open()
        await refined.submit(*AT_THE_EDGE)
        await until(lambda: bool(refined.changes))
        more = (a_sell("bob", price_ticks=3, salt="9"), a_buy("alice", price_ticks=3, salt="9"))
        await refined.submit(*map(a_placing, more))
        await asyncio.sleep(0.02)
        assert refined.changes == [TickChanged(MARKET, 100, 1_000, NOW_MS)]
        assert refined.engine.sequence == 7


async def test_a_trade_away_from_the_edge_changes_no_tick(tmp_path: Path) -> None:
    async with started(tmp_path) as refined, refined.refining():
        await refined.open()
        await refined.submit(
            a_placing(a_sell("bob", price_ticks=96)), a_placing(a_buy("alice", price_ticks=96))
        )
        await asyncio.sleep(0.02)
        assert refined.changes == []
        assert refined.ticks_per_one == 100


async def test_a_trade_of_the_other_token_counts_alike(tmp_path: Path) -> None:
    async with started(tmp_path) as refined, refined.refining():
        await refined.open()
        await refined.submit(
            a_placing(a_buy("bob", price_ticks=3)),
            a_placing(a_buy("alice", price_ticks=97, is_yes=False)),
        )
        await until(lambda: refined.ticks_per_one == 1_000)


async def test_a_market_that_ended_before_the_change_keeps_its_tick(tmp_path: Path) -> None:
    async with started(tmp_path) as refined:
        await refined.open()
        await refined.submit(*AT_THE_EDGE, ResolveMarket(NOW_MS, MARKET))
        async with refined.refining():
            await until(lambda: not refined.refiner.ticks_by_id)
        assert refined.ticks_per_one == 100


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["journal", "snapshot"])
async def test_a_change_that_a_crash_prevented_is_made_at_the_next_start(
    tmp_path: Path, *, is_snapshot: bool
) -> None:
    async with started(tmp_path) as refined:
        await refined.open()
        await refined.submit(*AT_THE_EDGE)
        if is_snapshot:
            await snapshot_now(refined.engine)
    async with started(tmp_path) as refined, refined.refining():
        assert refined.ticks_per_one == 100
        await until(lambda: bool(refined.changes))
        assert refined.ticks_per_one == 1_000


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["journal", "snapshot"])
async def test_a_start_after_the_change_has_the_finer_tick_by_the_journal_alone(
    tmp_path: Path, *, is_snapshot: bool
) -> None:
    async with started(tmp_path) as refined:
        await refined.open()
        await refined.submit(*AT_THE_EDGE, ChangeTick(NOW_MS, MARKET, 1_000))
        before = digest(refined.engine.state)
        if is_snapshot:
            await snapshot_now(refined.engine)
    async with started(tmp_path) as refined:
        assert digest(refined.engine.state) == before
        sequence = refined.engine.sequence
        async with refined.refining():
            await until(lambda: not refined.refiner.ticks_by_id)
        assert refined.engine.sequence == sequence


async def snapshot_now(engine: Engine) -> None:
    await engine.journal.keep_snapshot(Snapshot(engine.sequence, encode_state(engine.state)))


async def test_a_tick_that_cannot_change_now_changes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(tmp_path) as refined:
        await refined.open()
        await refined.submit(*AT_THE_EDGE)
        async with refined.refining():
            with monkeypatch.context() as stopping:
                stopping.setattr(refined.engine, "_is_ready", False)
                await asyncio.sleep(0.02)
                assert refined.ticks_per_one == 100
            await until(lambda: refined.ticks_per_one == 1_000)


@pytest.fixture
async def edge(rig: TradingRig) -> TradingRig:
    """The rig after its market traded at 0.97 and its tick was refined."""
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


async def test_every_route_states_the_finer_tick_and_the_same_prices(edge: TradingRig) -> None:
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


async def test_an_order_that_was_checked_before_the_change_is_placed_after_it(
    rig: TradingRig, carol: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is durable while the order waits for its signer; the engine reads its terms."""
    check = rig.context.nonces.check

    async def change_first(exchange: Any, order: Any) -> None:
        await check(exchange, order)
        await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))

    monkeypatch.setattr(type(rig.context.nonces), "check", staticmethod(change_first))
    await carol.placed(a_buy("carol", price_ticks=40))
    assert (await get(rig, "/book", token_id=YES))["bids"] == [{"price": "0.4", "size": "10"}]


class RemoteTrading:
    """A trading application that reaches the rig's engine over a socket."""

    def __init__(self, rig: TradingRig, path: Path) -> None:
        async def find() -> str:
            return f"{UNIX}{path}"

        self.shard = RemoteShard(partial(connect, find), INSTALLATION_TOKEN, self)
        self.context = build_context(
            deployment=rig.context.deployment,
            database=rig.context.database,
            shards=Shards([self.shard]),
            key_ring=rig.context.key_ring,
            chain=ChainView(rig.chain.fetch_nonce, rig.chain.fetch_has_code, rig.chain),
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
async def remote(rig: TradingRig, tmp_path: Path) -> AsyncIterator[RemoteTrading]:
    server = EngineServer(INSTALLATION_TOKEN)
    server.open(rig.host, rig.host.engine)
    listening = await listen(server.connection, tmp_path / "socket", None)
    remote = RemoteTrading(rig, tmp_path / "socket")
    running = asyncio.create_task(remote.shard.run())
    async with asyncio.timeout(SOON_S):
        await remote.shard.ready.wait()
    yield remote
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await remote.client.aclose()
    await listening.close()


async def test_a_remote_process_checks_with_the_finer_tick_once_it_is_published(
    rig: TradingRig, remote: RemoteTrading, carol: Trader
) -> None:
    finer = carol.body(a_buy("carol", price_ticks=35, ticks_per_one=1_000))
    refused = await carol.send("POST", "/order", finer, client=remote.client)
    assert refused.json()["code"] == "price_off_tick"
    await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))
    market = remote.context.books.market_by_id[MARKET]
    await until(lambda: market.ticks_per_one == 1_000)
    placed = await carol.send("POST", "/order", finer, client=remote.client)
    assert placed.json()["status"] == "live"
    answer = await remote.client.get("/tick-size", params={"token_id": YES})
    assert answer.json() == {"minimum_tick_size": 0.001}


async def test_an_order_from_a_process_that_has_the_old_tick_is_placed_at_its_price(
    rig: TradingRig, remote: RemoteTrading, carol: Trader
) -> None:
    """The order arrives at the engine before the engine's message arrives at the process."""
    await rig.submit(ChangeTick(NOW_MS, MARKET, 1_000))
    market = remote.context.books.market_by_id[MARKET]
    await until(lambda: market.ticks_per_one == 1_000)
    market.rules = some_rules(100)
    body = carol.body(a_buy("carol", price_ticks=40))
    placed = await carol.send("POST", "/order", body, client=remote.client)
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
        assert unsettled.trade.ticks_per_one == 100
        assert await get(rig, "/tick-size", token_id=YES) == {"minimum_tick_size": 0.001}


async def test_a_price_history_continues_over_the_change(edge: TradingRig) -> None:
    edge.clock.move(60_000)
    await edge.submit(a_placing(a_sell("bob", 50, 5 * TOKEN), at_ms=edge.clock.at_ms))
    await edge.settle_tables()
    edge.clock.move(60_000)
    history = (await get(edge, "/prices-history", market=YES, interval="1h"))["history"]
    assert [point["p"] for point in history] == [0.97, 0.265]

"""Markets with a delay: from the operator's setting over the API to the tables and the streams."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.trading import Trader, TradingRig, a_rig, a_rig_on
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_spending,
    a_word,
    an_open_market,
    some_funds,
)
from tests.trading.rig import listening

from foretell.domain.exchange.commands import DelayMarket
from foretell.engine.writer import sports_delays
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.store.creation.games import SportsCondition, load_sports_conditions
from foretell.store.database import Database
from foretell.store.trading.orders import load_order

pytestmark = pytest.mark.anyio

MARKET = a_word("market")
DELAY_MS = 3_000
DELAYING = Path(__file__).with_name("delaying.py")
BUY = a_buy("alice", price_ticks=40, size_units=6 * TOKEN)


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """A market with a delay, in which bob offers ten tokens at 40."""
    async with a_rig_on(tmp_path / "journal", fresh_database) as rig:
        await begin(rig)
        yield rig


async def begin(rig: TradingRig) -> None:
    await rig.open("market", "alice", "bob")
    await rig.submit(DelayMarket(NOW_MS, MARKET, DELAY_MS))
    await rig.rest(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))


async def pass_time(rig: TradingRig, ms: int) -> None:
    rig.clock.move(ms)
    await rig.host.engine.expire()


def state_of(order: Any) -> tuple[str, str]:
    return order["status"], order["size_matched"]


async def test_an_order_is_delayed_visible_and_then_matched(rig: TradingRig) -> None:
    alice = await rig.trader("alice")
    answer = await alice.placed(BUY)
    assert (answer["status"], answer["tradeIDs"], answer["makingAmount"]) == ("delayed", [], "")
    path = f"/data/order/{answer['orderID']}"
    assert state_of(await alice.get(path)) == ("DELAYED", "0")
    assert (await alice.get("/data/orders"))["data"] == []
    await pass_time(rig, DELAY_MS - 1)
    assert state_of(await alice.get(path)) == ("DELAYED", "0")
    await pass_time(rig, 1)
    found = await alice.get(path)
    assert state_of(found) == ("MATCHED", "6")
    assert found["associate_trades"] == [
        trade["id"] for trade in (await alice.get("/data/trades"))["data"]
    ]
    again = await alice.placed(BUY)
    assert (again["status"], again["replayed"]) == ("matched", True)


async def test_an_order_that_arrives_after_the_delay_comes_behind_the_delayed_one(
    rig: TradingRig,
) -> None:
    """The release does not wait for the loop: the next order is matched after it."""
    alice = await rig.trader("alice")
    await alice.placed(a_buy("alice", price_ticks=40, size_units=10 * TOKEN))
    await rig.submit(DelayMarket(NOW_MS, MARKET, 0))
    rig.clock.move(DELAY_MS)
    bob = await rig.trader("bob")
    late = await bob.placed(a_sell("bob", price_ticks=40, size_units=5 * TOKEN, salt="9"))
    assert late["status"] == "live"


async def test_the_budget_of_a_delayed_order_is_its_size_after_the_release(rig: TradingRig) -> None:
    """It buys more than it asked for, because the price became better."""
    alice = await rig.trader("alice")
    answer = await alice.placed(a_spending("alice", 40, 2 * TOKEN), "FAK")
    await rig.rest(a_sell("bob", price_ticks=20, size_units=20 * TOKEN, salt="7"))
    await pass_time(rig, DELAY_MS)
    found = await alice.get(f"/data/order/{answer['orderID']}")
    assert (found["original_size"], found["size_matched"]) == ("10", "10")


@pytest.mark.parametrize("route", ["/order", "/cancel-all", "/cancel-market-orders"])
async def test_a_delayed_order_can_be_canceled(rig: TradingRig, route: str) -> None:
    alice = await rig.trader("alice")
    order_id = (await alice.placed(BUY))["orderID"]
    bodies = {"/order": {"orderID": order_id}, "/cancel-market-orders": {"market": MARKET}}
    answer = (await alice.send("DELETE", route, bodies.get(route))).json()
    assert answer == {"canceled": [order_id], "not_canceled": {}}
    await pass_time(rig, DELAY_MS)
    assert state_of(await alice.get(f"/data/order/{order_id}")) == ("CANCELED", "0")
    funds = await alice.get("/balance-allowance", asset_type="COLLATERAL")
    assert funds["reserved"] == "0"


async def test_another_address_does_not_cancel_it(rig: TradingRig) -> None:
    alice, bob = await rig.trader("alice"), await rig.trader("bob")
    order_id = (await alice.placed(BUY))["orderID"]
    answer = (await bob.send("DELETE", "/order", {"orderID": order_id})).json()
    assert answer["canceled"] == []
    assert state_of(await alice.get(f"/data/order/{order_id}")) == ("DELAYED", "0")


async def test_the_user_stream_shows_each_step(rig: TradingRig) -> None:
    alice = await rig.trader("alice")
    async with serving(rig.app) as host, listening(host, "/ws/user") as listener:
        await listener.log_in(alice)
        await alice.placed(BUY)
        held = await listener.message()
        assert (held["type"], held["status"]) == ("PLACEMENT", "DELAYED")
        await pass_time(rig, DELAY_MS)
        updated, trade = await listener.messages(2)
        assert (updated["type"], *state_of(updated)) == ("UPDATE", "MATCHED", "6")
        assert trade["taker_order_id"] == updated["id"]
        dated = a_buy("alice", price_ticks=40, size_units=6 * TOKEN, expiration_s=NOW_S + 65)
        await alice.placed(dated, "GTD")
        await listener.message()
        await pass_time(rig, DELAY_MS)
        ended = await listener.message()
        assert (ended["status"], ended["close_reason"]) == ("CANCELED", "expired")


async def test_after_a_restart_the_delayed_order_waits_on(
    database_file: Path, tmp_path: Path
) -> None:
    clock = Clock()
    async with a_rig(tmp_path / "journal", database_file, clock) as rig:
        await begin(rig)
        alice = await rig.trader("alice")
        order_id = (await alice.placed(BUY))["orderID"]
        before = digest(rig.host.engine.state)
    async with a_rig(tmp_path / "journal", database_file, clock) as rig:
        assert digest(rig.host.engine.state) == before
        assert order_id in rig.context.streams.user.live_orders
        alice.rig = rig
        await pass_time(rig, DELAY_MS)
        assert state_of(await alice.get(f"/data/order/{order_id}")) == ("MATCHED", "6")


def killed(folder: Path, acknowledgements: int) -> list[str]:
    """Run a process that places orders, kill it in the middle, and return what it acknowledged."""
    with subprocess.Popen(
        [sys.executable, str(DELAYING), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    ) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(acknowledgements)]
        process.kill()
        seen += [line.strip() for line in process.stdout if line.endswith("\n")]
    return seen


async def test_a_process_that_is_killed_keeps_the_orders_that_it_holds(tmp_path: Path) -> None:
    clock = Clock()

    def an_engine() -> Engine:
        return Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), clock.now_ms)

    engine = an_engine()
    await engine.start()
    for command in (
        an_open_market(),
        some_funds("alice", "bob"),
        a_placing(a_sell("bob", price_ticks=40, size_units=10 * TOKEN)),
        DelayMarket(NOW_MS, MARKET, DELAY_MS),
    ):
        await engine.submit(command)
    await engine.close()
    acknowledged = await asyncio.to_thread(killed, tmp_path, 5)
    engine = an_engine()
    await engine.start()
    held = list(engine.state.delays.orders)
    assert held[: len(acknowledged)] == acknowledged
    clock.move(DELAY_MS)
    await engine.expire()
    assert engine.state.delays.next_ms() is None
    assert len(engine.state.unsettled_trades) == 2
    assert set(engine.state.live_orders) == set(held[2:])
    before = digest(engine.state)
    await engine.close()
    engine = an_engine()
    await engine.start()
    assert digest(engine.state) == before
    await engine.close()


async def test_the_tables_are_those_of_a_release_in_the_same_batch(rig: TradingRig) -> None:
    """Both effects of an order may reach the tables together."""
    alice = await rig.trader("alice")
    ids = []
    for salt in range(20):
        order = a_buy("alice", price_ticks=40, size_units=5 * TOKEN, salt=str(salt))
        ids.append((await alice.placed(order))["orderID"])
        await pass_time(rig, DELAY_MS)
    await rig.settle_tables()
    async with rig.context.database.reading() as tx:
        rows = [await load_order(tx, order_id) for order_id in ids]
    assert [row.status.value for row in rows if row] == ["MATCHED"] * 2 + ["LIVE"] * 18


async def test_the_operators_delay_is_that_of_sports_markets_alone(
    fresh_database: Database, tmp_path: Path
) -> None:
    async with a_rig_on(tmp_path / "journal", fresh_database, sports_delay_s=3) as rig:
        await rig.open("market")
        game = a_game_event_row()
        async with rig.context.database.writing() as tx:
            await Rows(tx, numbers=rig.numbers).open(game)
        await run_feed(rig, 3)
        delays = rig.host.engine.state.delays.ms_by_market
        sports = {market.condition_id for market in game.markets}
        assert delays == dict.fromkeys(sports, 3_000)
        shown = [
            (await rig.client.get(f"/markets/{each}")).json()["seconds_delay"]
            for each in (next(iter(sports)), MARKET)
        ]
        assert shown == [3, 0]
        await run_feed(rig, 0)
        assert delays == {}


async def run_feed(rig: TradingRig, sports_delay_s: int) -> None:
    await a_feed(rig, sports_delay_s).run_once()


def a_feed(rig: TradingRig, sports_delay_s: int) -> ChainFeed:
    context = rig.context
    return ChainFeed(
        rig.host.engine, context.database, context.exchanges, 1, sports_delay_s=sports_delay_s
    )


async def test_a_running_feed_reads_the_sports_markets_since_its_last_look_alone(
    fresh_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sports_delays, "COMMITTED_LATE_MARKETS", 0)
    read: list[int] = []

    async def noted(*arguments: Any) -> Sequence[SportsCondition]:
        found = await load_sports_conditions(*arguments)
        read.append(len(found))
        return found

    monkeypatch.setattr(sports_delays, "load_sports_conditions", noted)
    async with a_rig_on(tmp_path / "journal", fresh_database, sports_delay_s=3) as rig:
        feed = a_feed(rig, 3)
        delays = rig.host.engine.state.delays.ms_by_market
        games = [a_game_event_row(f"game-{number}") for number in range(3)]
        for number, game in enumerate(games):
            async with rig.context.database.writing() as tx:
                await Rows(tx, numbers=rig.numbers).open(game)
            await feed.run_once()
            await feed.run_once()
            assert len(delays) == (number + 1) * len(game.markets)
        assert read == [len(games[0].markets), 0] * 3


async def test_a_trader_cannot_release_its_order(rig: TradingRig) -> None:
    """The same order sent again gets its first answer, and stays where it is."""
    alice: Trader = await rig.trader("alice")
    await alice.placed(BUY)
    again = await alice.placed(BUY)
    assert (again["status"], again["present"]["status"]) == ("delayed", "DELAYED")

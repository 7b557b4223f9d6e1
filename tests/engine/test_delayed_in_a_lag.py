"""Delayed orders that are released while settlement is behind."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.trading import TradingRig, a_rig, a_rig_on
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_placing, a_sell, a_word, an_order_id
from tests.trading.rig import listening

from foretell.domain.errors.open_orders import TooManyUnsettledTrades
from foretell.domain.exchange.commands import CancelOrders, DelayMarket
from foretell.engine import settlement_lag
from foretell.engine.settlement_lag import LAG_REFUSED_S
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

MARKET = a_word("market")
DELAY_MS = 3_000
BUY = a_buy("alice", price_ticks=40, size_units=6 * TOKEN)


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """A market with a delay, a trade that waits for the chain, and an offer of ten tokens at 40."""
    async with a_rig_on(tmp_path / "journal", fresh_database) as rig:
        await begin(rig)
        yield rig


async def begin(rig: TradingRig) -> None:
    await rig.open("market", "alice", "bob", "carol", "dave")
    await rig.rest(a_sell("carol", price_ticks=50, size_units=5 * TOKEN))
    await rig.rest(a_buy("dave", price_ticks=50, size_units=5 * TOKEN))
    assert len(rig.host.engine.state.unsettled_trades) == 1
    await rig.submit(DelayMarket(NOW_MS, MARKET, DELAY_MS))
    await rig.rest(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))


async def grow_late(rig: TradingRig) -> Any:
    """Have alice's order delayed before the lag refuses orders, and released after that."""
    rig.clock.move((LAG_REFUSED_S - 1) * 1000)
    alice = await rig.trader("alice")
    answer = await alice.placed(BUY)
    assert answer["status"] == "delayed"
    rig.clock.move(DELAY_MS)
    return alice


async def found(trader: Any) -> tuple[str, str, str]:
    order = await trader.get(f"/data/order/{an_order_id(BUY)}")
    return order["status"], order["size_matched"], order["close_reason"]


async def test_h4_a_delayed_order_is_closed_where_one_that_arrives_is_refused_for_the_lag(
    rig: TradingRig,
) -> None:
    alice = await grow_late(rig)
    refused = await alice.place(a_buy("alice", price_ticks=40, size_units=5 * TOKEN, salt="2"))
    assert refused.json()["code"] == "engine_busy"
    await rig.host.engine.expire()
    assert await found(alice) == ("CANCELED", "0", "settlement_behind")
    assert len(rig.host.engine.state.unsettled_trades) == 1
    funds = await alice.get("/balance-allowance", asset_type="COLLATERAL")
    assert funds["reserved"] == "0"
    (note,) = await alice.get("/notifications")
    assert (note["type"], note["payload"]["order_id"]) == (1, an_order_id(BUY))


async def test_h4_an_order_that_arrives_after_the_delay_finds_the_delayed_one_closed(
    rig: TradingRig,
) -> None:
    """The release does not wait for the loop."""
    alice = await grow_late(rig)
    bob = await rig.trader("bob")
    resting = await bob.placed(a_sell("bob", price_ticks=60, size_units=5 * TOKEN, salt="9"))
    assert resting["status"] == "live"
    assert await found(alice) == ("CANCELED", "0", "settlement_behind")


async def test_a_delayed_order_that_meets_nothing_any_more_rests_at_any_lag(
    rig: TradingRig,
) -> None:
    alice = await grow_late(rig)
    state = rig.host.engine.state
    (offer,) = state.live_orders
    await rig.submit(CancelOrders(rig.clock.at_ms, state.live_orders[offer].signer, (offer,)))
    await rig.host.engine.expire()
    assert (await found(alice))[0] == "LIVE"


async def test_a_delayed_order_of_a_taker_with_too_many_trades_that_wait_is_closed(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settlement_lag, "WAITING_TRADES_MAX", 1)
    monkeypatch.setattr(settlement_lag, "FEW_TRADES", 0)
    order = a_placing(a_buy("dave", price_ticks=40, size_units=5 * TOKEN, salt="4"))
    await rig.submit(order)
    rig.clock.move(DELAY_MS)
    (delayed,) = rig.host.engine.state.delays.orders
    assert isinstance(rig.host._lag.refusal_of(a_placing(a_buy("dave"))), TooManyUnsettledTrades)
    await rig.host.engine.expire()
    assert rig.host.engine.state.placement_by_order[delayed].status == "CANCELED"


async def test_the_user_stream_says_why_a_delayed_order_was_closed(rig: TradingRig) -> None:
    rig.clock.move((LAG_REFUSED_S - 1) * 1000)
    alice = await rig.trader("alice")
    async with serving(rig.app) as host, listening(host, "/ws/user") as listener:
        await listener.log_in(alice)
        await alice.placed(BUY)
        await listener.message()
        rig.clock.move(DELAY_MS)
        await rig.host.engine.expire()
        ended = await listener.message()
    assert (ended["type"], ended["status"], ended["size_matched"], ended["close_reason"]) == (
        "UPDATE",
        "CANCELED",
        "0",
        "settlement_behind",
    )


async def test_a_replay_closes_the_delayed_order_although_nothing_is_behind_any_more(
    database_file: Path, tmp_path: Path
) -> None:
    clock = Clock()
    async with a_rig(tmp_path / "journal", database_file, clock) as rig:
        await begin(rig)
        alice = await grow_late(rig)
        await rig.host.engine.expire()
        before = digest(rig.host.engine.state)
    async with a_rig(tmp_path / "journal", database_file, clock, settlement_lag_s_max=0) as rig:
        assert digest(rig.host.engine.state) == before
        alice.rig = rig
        assert await found(alice) == ("CANCELED", "0", "settlement_behind")

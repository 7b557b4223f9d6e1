import asyncio
import contextlib
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.rigs.clock import Clock
from tests.rigs.trading import Trader, TradingRig, a_rig
from tests.rigs.values import a_buy, a_deployment, a_sell, an_address, numbered_uuids

from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.exchange import EngineStopped
from foretell.domain.errors.storage import WritesBusy
from foretell.engine.protocol.requests import CancelMatchingRequest, CancelOrdersReply
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.store.database import Database
from foretell.store.public_reads.places import WaitBounds, answering
from foretell.store.trading.heartbeats import load_heartbeats
from foretell.store.write_places import SQLITE_PLACES, WritePlaces, writing_for

pytestmark = pytest.mark.anyio

WITHIN_S = 30.0
ALICE, BOB = an_address("alice"), an_address("bob")


async def beat(trader: Trader, heartbeat_id: str | None, path: str = "/v1/heartbeats") -> Any:
    return await trader.send("POST", path, {"heartbeat_id": heartbeat_id})


async def beaten(trader: Trader, heartbeat_id: str | None) -> str:
    response = await beat(trader, heartbeat_id)
    assert response.status_code == 200, response.text
    name: str = response.json()["heartbeat_id"]
    return name


async def beating_keys(rig: TradingRig) -> list[str]:
    async with rig.context.database.reading() as tx:
        return [beating.key_id for beating in await load_heartbeats(tx)]


@pytest.mark.parametrize("path", ["/heartbeats", "/v1/heartbeats"])
@pytest.mark.parametrize("first", [None, ""])
async def test_each_beat_names_the_one_before(alice: Trader, path: str, first: str | None) -> None:
    one = (await beat(alice, first, path)).json()["heartbeat_id"]
    two = (await beat(alice, one, path)).json()["heartbeat_id"]
    assert one != two
    assert (await beat(alice, two, path)).status_code == 200


@pytest.mark.parametrize("wrong", [None, "", "not the last one"])
async def test_a_beat_that_does_not_follow_is_refused_with_the_one_to_name(
    alice: Trader, wrong: str | None
) -> None:
    last = await beaten(alice, None)
    alice.rig.clock.move(1_000)
    response = await beat(alice, wrong)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid Heartbeat ID")
    assert response.json()["heartbeat_id"] == last
    assert await beaten(alice, last)


async def test_an_unknown_beat_begins_with_the_one_in_the_refusal(
    rig: TradingRig, alice: Trader
) -> None:
    response = await beat(alice, "of another session")
    assert response.status_code == 400
    assert await beaten(alice, response.json()["heartbeat_id"])
    assert await beating_keys(rig) == [alice.key_id]


async def test_orders_stay_while_the_key_beats(rig: TradingRig, alice: Trader) -> None:
    await alice.placed(a_buy("alice"))
    last = await beaten(alice, None)
    for _ in range(5):
        rig.clock.move(10_000)
        await rig.host.heartbeats.run_once()
        last = await beaten(alice, last)
    assert rig.host.engine.state.live_orders


async def test_orders_of_a_key_are_canceled_when_its_beats_stop(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    other = await rig.trader("alice", nonce=1)
    mine = [await alice.placed(a_buy("alice")), await alice.placed(a_sell("alice", price_ticks=70))]
    kept = [
        await other.placed(a_buy("alice", price_ticks=20)),
        await bob.placed(a_buy("bob", price_ticks=20)),
    ]
    await beaten(alice, None)
    await beaten(bob, None)
    rig.clock.move(10_000)
    await rig.host.heartbeats.run_once()
    assert len(rig.host.engine.state.live_orders) == 4
    await beaten(bob, (await beat(bob, None)).json()["heartbeat_id"])
    rig.clock.move(1)
    await rig.host.heartbeats.run_once()
    live = set(rig.host.engine.state.live_orders)
    assert live == {answer["orderID"] for answer in kept}
    assert not live & {answer["orderID"] for answer in mine}
    assert await beating_keys(rig) == [bob.key_id]


async def test_a_key_that_never_beat_keeps_its_orders(rig: TradingRig, alice: Trader) -> None:
    await alice.placed(a_buy("alice"))
    rig.clock.move(100_000)
    await rig.host.heartbeats.run_once()
    assert rig.host.engine.state.live_orders


async def test_after_a_restart_every_key_that_beat_has_the_whole_time_again(
    database_file: Path, tmp_path: Path
) -> None:
    clock = Clock()
    async with a_rig(tmp_path / "journal", database_file, clock) as rig:
        await rig.open("market", "alice")
        alice = await rig.trader("alice")
        await alice.placed(a_buy("alice"))
        await beaten(alice, None)
    clock.move(60_000)
    async with a_rig(tmp_path / "journal", database_file, clock) as rig:
        clock.move(10_000)
        await rig.host.heartbeats.run_once()
        assert rig.host.engine.state.live_orders
        clock.move(1)
        await rig.host.heartbeats.run_once()
        assert not rig.host.engine.state.live_orders
        assert await beating_keys(rig) == []


async def test_a_cancel_that_fails_is_tried_again(
    rig: TradingRig, alice: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    await alice.placed(a_buy("alice"))
    await beaten(alice, None)
    rig.clock.move(10_001)
    engine = rig.host.engine

    async def refuse(_: object) -> NoReturn:
        raise EngineStopped("for a while")

    with monkeypatch.context() as stopping:
        stopping.setattr(engine, "submit", refuse)
        with pytest.raises(EngineStopped):
            await rig.host.heartbeats.run_once()
    assert await beating_keys(rig) == [alice.key_id]
    await rig.host.heartbeats.run_once()
    assert not engine.state.live_orders
    assert await beating_keys(rig) == []


async def test_a_beat_while_the_orders_are_being_canceled_begins_again(
    rig: TradingRig, alice: Trader
) -> None:
    await alice.placed(a_buy("alice"))
    last = await beaten(alice, None)
    rig.clock.move(10_001)
    running = asyncio.create_task(rig.host.heartbeats.run_once())
    await asyncio.sleep(0)
    response = await beat(alice, last)
    await running
    assert response.status_code == 400
    assert not rig.host.engine.state.live_orders
    assert await beating_keys(rig) == [alice.key_id]
    assert await beaten(alice, response.json()["heartbeat_id"])


async def test_a_beat_during_the_cancels_of_another_key_saves_its_own_orders(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    heartbeats = rig.host.heartbeats
    await alice.placed(a_buy("alice"))
    kept = (await bob.placed(a_buy("bob")))["orderID"]
    await beaten(alice, None)
    last = await beaten(bob, None)
    rig.clock.move(10_001)
    running = asyncio.create_task(heartbeats.run_once())
    await asyncio.sleep(0)
    renewed = await heartbeats.beat(bob.key_id, bob.address, last)
    await running
    assert list(rig.host.engine.state.live_orders) == [kept]
    assert await beating_keys(rig) == [bob.key_id]
    assert await beaten(bob, renewed)


async def test_two_first_beats_at_once_begin_once(rig: TradingRig, alice: Trader) -> None:
    responses = await asyncio.gather(beat(alice, None), beat(alice, None))
    names = {response.json()["heartbeat_id"] for response in responses}
    assert len(names) == 1
    assert await beating_keys(rig) == [alice.key_id]


async def test_the_loop_cancels_by_itself(rig: TradingRig, alice: Trader) -> None:
    await alice.placed(a_buy("alice"))
    await beaten(alice, None)
    rig.clock.move(10_001)
    canceled = asyncio.Event()
    rig.host.engine.subscribe(lambda _: canceled.set())
    loop = asyncio.create_task(rig.host.heartbeats.run())
    async with asyncio.timeout(60):
        await canceled.wait()
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    assert not rig.host.engine.state.live_orders


@pytest.mark.parametrize("body", [[], {"heartbeat_id": 5}, "x"])
async def test_a_malformed_beat_is_refused(alice: Trader, body: object) -> None:
    response = await alice.send("POST", "/heartbeats", body)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid payload")


class Switch:
    """Heartbeats without an engine, and the keys whose orders they canceled; requests wait so long for a place."""

    def __init__(self, database: Database, wait_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.canceled: list[str | None] = []
        self.clock, self.elapsed = Clock(), Clock()
        self.places = WritePlaces(SQLITE_PLACES, WaitBounds(wait_s=wait_s))
        self.heartbeats = Heartbeats(
            database,
            self._cancel,
            Wallets(a_deployment()),
            now_ms=self.clock.now_ms,
            elapsed_ms=self.elapsed.now_ms,
            new_uuid=numbered_uuids(),
        )
        monkeypatch.setattr(database, "_writes", self.places)

    async def _cancel(self, request: CancelMatchingRequest) -> CancelOrdersReply:
        self.canceled.append(request.owner)
        return CancelOrdersReply([], {})


async def test_a_key_that_waits_to_begin_does_not_delay_the_cancels_of_another(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All keys shared a lock, in which a key waited for the writes of its account."""
    switch = Switch(database, 2 * WITHIN_S, monkeypatch)
    await switch.heartbeats.beat("of bob", BOB, None)
    switch.elapsed.move(10_001)
    async with contextlib.AsyncExitStack() as stack:
        with answering("a client"), writing_for(ALICE):
            await stack.enter_async_context(switch.places.taken())
            beginning = asyncio.create_task(switch.heartbeats.beat("of alice", ALICE, None))
        await asyncio.sleep(0)
        async with asyncio.timeout(WITHIN_S):
            await switch.heartbeats.run_once()
        assert switch.canceled == ["of bob"]
        assert not beginning.done()
    assert await switch.heartbeats.beat("of alice", ALICE, await beginning)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_set_neither_cancels_orders_nor_keeps_those_of_a_silent_key(
    database: Database, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    switch = Switch(database, WITHIN_S, monkeypatch)
    await switch.heartbeats.beat("of bob", BOB, None)
    switch.clock.move_s(hours * 3_600)
    await switch.heartbeats.run_once()
    assert switch.canceled == []
    switch.elapsed.move(10_001)
    await switch.heartbeats.run_once()
    assert switch.canceled == ["of bob"]


async def test_a_first_beat_that_is_refused_begins_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The orders of a client whose heartbeat was refused were canceled ten seconds later."""
    switch = Switch(database, 0.05, monkeypatch)
    with answering("a client"), writing_for(ALICE):
        async with switch.places.taken():
            with pytest.raises(WritesBusy):
                await switch.heartbeats.beat("of alice", ALICE, None)
    switch.elapsed.move(10_001)
    await switch.heartbeats.run_once()
    assert switch.canceled == []
    assert await switch.heartbeats.beat("of alice", ALICE, None)

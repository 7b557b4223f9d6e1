import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.trading import a_rig, first_answer
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_word,
    an_address,
    an_open_market,
    an_order_id,
    some_funds,
)

from foretell.domain.errors.exchange import (
    EngineBusy,
    EngineRestarting,
    EngineStopped,
    FillOrKillUnfilled,
)
from foretell.domain.errors.storage import TablesBehindSnapshot
from foretell.domain.exchange.apply import Cancellation
from foretell.domain.exchange.commands import CancelOrders, PlaceOrder, encode_command
from foretell.domain.exchange.effects import MarketRestored
from foretell.domain.exchange.order import OrderStatus, OrderType
from foretell.domain.exchange.snapshot import encode_state
from foretell.domain.exchange.state import Placement
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.engine import WAITING_MAX, Engine
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Snapshot
from foretell.trading.streams.user_channel import UserChannel
from foretell.trading.wire.orders import OrderView

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 64 * 1024
CRASHING = Path(__file__).with_name("crashing.py")


@contextlib.asynccontextmanager
async def an_engine(folder: Path, clock: Clock | None = None) -> AsyncIterator[Engine]:
    engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), (clock or Clock()).now_ms)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


@contextlib.asynccontextmanager
async def a_trading_engine(folder: Path, clock: Clock | None = None) -> AsyncIterator[Engine]:
    async with an_engine(folder, clock) as engine:
        await engine.submit(an_open_market())
        await engine.submit(some_funds("alice", "bob"))
        yield engine


async def place(engine: Engine, command: PlaceOrder) -> Placement:
    placement = await engine.submit(command)
    assert isinstance(placement, Placement)
    return placement


def submitted(engine: Engine, command: PlaceOrder | CancelOrders) -> "asyncio.Task[object]":
    return asyncio.create_task(engine.submit(command))


async def test_a_result_comes_after_the_command_is_durable_and_published(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        published: list[CommittedCommand] = []
        engine.subscribe(published.append)
        placing = submitted(engine, a_placing(a_buy("alice")))
        await asyncio.sleep(0)
        assert engine.state.live_orders
        assert not published
        assert not placing.done()
        placement = await placing
        assert isinstance(placement, Placement)
        assert [committed.sequence for committed in published] == [engine.sequence]


async def test_commands_are_published_in_the_order_of_the_journal(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        published: list[int] = []
        engine.subscribe(lambda committed: published.append(committed.sequence))
        orders = [a_buy("alice", size_units=5 * TOKEN, salt=str(n)) for n in range(50)]
        await asyncio.gather(*(engine.submit(a_placing(order)) for order in orders))
        assert published == list(range(3, 53))


async def test_a_refusal_that_depends_on_a_command_not_yet_durable_waits_too(
    tmp_path: Path,
) -> None:
    async with a_trading_engine(tmp_path) as engine:
        fok = a_buy("alice", salt="2")
        taking = submitted(engine, a_placing(a_buy("alice")))
        refused = submitted(engine, a_placing(fok, OrderType.FOK))
        await asyncio.sleep(0)
        assert not refused.done()
        await taking
        with pytest.raises(FillOrKillUnfilled):
            await refused


async def test_a_refusal_with_nothing_to_wait_for_comes_at_once(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        with pytest.raises(FillOrKillUnfilled):
            await engine.submit(a_placing(a_buy("alice"), OrderType.FOK))
        assert engine.sequence == 2


async def test_a_command_that_changes_nothing_is_not_written(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        outcome = await engine.submit(CancelOrders(NOW_MS, an_address("alice"), (a_word("x"),)))
        assert isinstance(outcome, Cancellation)
        assert outcome.canceled == ()
        await engine.submit(a_placing(a_buy("alice")))
        await engine.submit(a_placing(a_buy("alice")))
        assert engine.sequence == 3


async def test_a_restart_ends_in_the_same_state(tmp_path: Path) -> None:
    clock = Clock()
    async with a_trading_engine(tmp_path, clock) as engine:
        await place(engine, a_placing(a_buy("alice", price_ticks=40)))
        await place(engine, a_placing(a_sell("bob", price_ticks=40, size_units=6 * TOKEN)))
        await place(engine, a_placing(a_buy("bob", expiration_s=NOW_S + 100), OrderType.GTD))
        before, sequence = digest(engine.state), engine.sequence
    async with an_engine(tmp_path, clock) as engine:
        assert (digest(engine.state), engine.sequence) == (before, sequence)
        again = await place(engine, a_placing(a_buy("alice", price_ticks=40)))
        assert again.status is OrderStatus.LIVE
        assert engine.sequence == sequence


async def test_a_restart_publishes_everything_again(tmp_path: Path) -> None:
    first: list[CommittedCommand] = []
    again: list[CommittedCommand] = []
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    engine = Engine(journal, Clock().now_ms)
    engine.subscribe(first.append)
    await engine.start()
    await engine.submit(an_open_market())
    await engine.submit(some_funds("alice", "bob"))
    await engine.submit(a_placing(a_buy("alice")))
    await engine.submit(a_placing(a_sell("bob")))
    await engine.close()
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    engine.subscribe(again.append)
    await engine.start()
    await engine.close()
    assert [committed for committed in again if committed.effects] == first


async def snapshot_now(engine: Engine) -> None:
    snapshot = Snapshot(engine.sequence, encode_state(engine.state))
    await engine.journal.keep_snapshot(snapshot)


async def some_trading_with_snapshots(folder: Path, after: int, clock: Clock) -> tuple[str, int]:
    """Trade, with two snapshots after this many orders; return the digest and the sequence."""
    async with a_trading_engine(folder, clock) as engine:
        for number in range(12):
            await place(engine, a_placing(a_buy("alice", price_ticks=40 - number, salt="1")))
            await place(engine, a_placing(a_sell("bob", price_ticks=35, salt=str(number))))
            if number in {after, after + 1}:
                await snapshot_now(engine)
        return digest(engine.state), engine.sequence


@pytest.mark.parametrize("after", [0, 5, 10])
async def test_a_start_from_a_snapshot_ends_in_the_same_state(tmp_path: Path, after: int) -> None:
    clock = Clock()
    before = await some_trading_with_snapshots(tmp_path, after, clock)
    async with an_engine(tmp_path, clock) as engine:
        assert (digest(engine.state), engine.sequence) == before
        assert engine.clock_ms() == NOW_MS


async def test_a_start_from_a_snapshot_publishes_its_state_and_then_the_rest(
    tmp_path: Path,
) -> None:
    _, last = await some_trading_with_snapshots(tmp_path, 5, Clock())
    published: list[CommittedCommand] = []
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    engine.subscribe(published.append)
    await engine.start()
    await engine.close()
    first, *rest = published
    assert isinstance(first.effects[0], MarketRestored)
    assert [committed.sequence for committed in rest] == list(range(first.sequence + 1, last + 1))


@pytest.mark.parametrize("tables_sequence", [20, 24, 26])
async def test_what_the_tables_have_is_published_as_one_state(
    tmp_path: Path, tables_sequence: int
) -> None:
    """It was published command by command before; a new subscriber needs the state."""
    before, last = await some_trading_with_snapshots(tmp_path, 5, Clock())
    published: list[CommittedCommand] = []
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    engine.subscribe(published.append)
    await engine.start(tables_sequence)
    await engine.close()
    first, *rest = published
    (restored, *_) = first.effects
    assert isinstance(restored, MarketRestored)
    assert first.sequence == tables_sequence
    assert [committed.sequence for committed in rest] == list(range(tables_sequence + 1, last + 1))
    assert digest(engine.state) == before
    assert engine.published_sequence == last


async def test_tables_that_are_behind_the_snapshot_get_all_that_they_lack(
    tmp_path: Path,
) -> None:
    before, last = await some_trading_with_snapshots(tmp_path, 5, Clock())
    published: list[CommittedCommand] = []
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    engine.subscribe(published.append)
    await engine.start(3)
    await engine.close()
    first, *rest = published
    assert (first.sequence, type(first.effects[0])) == (3, MarketRestored)
    assert [committed.sequence for committed in rest] == list(range(4, last + 1))
    assert digest(engine.state) == before


async def test_tables_that_lack_removed_commands_are_refused(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        for salt in range(300):
            await place(engine, a_placing(a_buy("alice", size_units=5 * TOKEN, salt=str(salt))))
            if salt in {280, 290}:
                await snapshot_now(engine)
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    with pytest.raises(TablesBehindSnapshot) as refusal:
        await engine.start(200)
    await engine.close()
    assert refusal.value.details == {"tables_sequence": 200, "snapshot_sequence": 293}


async def test_m1_a_start_with_tables_between_two_snapshots_takes_the_older_one(
    tmp_path: Path,
) -> None:
    """A finding: it was refused, although the journal had all that the tables lacked."""
    async with a_trading_engine(tmp_path) as engine:
        for salt in range(300):
            await place(engine, a_placing(a_buy("alice", size_units=5 * TOKEN, salt=str(salt))))
            if salt in {280, 290}:
                await snapshot_now(engine)
        before, last = digest(engine.state), engine.sequence
    published: list[CommittedCommand] = []
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    engine.subscribe(published.append)
    await engine.start(288)
    await engine.close()
    assert [each.sequence for each in published if each.sequence > 288] == list(
        range(289, last + 1)
    )
    assert digest(engine.state) == before


async def test_a_command_that_was_written_without_a_reply_is_found_by_the_next_start(
    tmp_path: Path,
) -> None:
    command = a_placing(a_buy("alice"))
    async with a_trading_engine(tmp_path) as engine:
        unanswered = submitted(engine, command)
        await asyncio.sleep(0)
        unanswered.cancel()
    async with an_engine(tmp_path) as engine:
        assert list(engine.state.live_orders) == [command.order_id]
        assert (await place(engine, command)).order_id == command.order_id
        assert len(engine.state.live_orders) == 1


async def test_before_the_journal_is_read_nothing_is_taken(tmp_path: Path) -> None:
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    readiness = [engine.is_ready]
    with pytest.raises(EngineRestarting):
        await engine.submit(an_open_market())
    await engine.start()
    readiness.append(engine.is_ready)
    await engine.close()
    assert readiness == [False, True]
    with pytest.raises(EngineRestarting):
        await engine.submit(an_open_market())


async def test_a_journal_that_cannot_write_stops_the_engine(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    engine = Engine(journal, Clock().now_ms)
    published: list[CommittedCommand] = []
    await engine.start()
    await engine.submit(an_open_market())
    await engine.submit(some_funds("alice"))
    engine.subscribe(published.append)
    broken = os.open("/dev/null", os.O_RDONLY)
    os.dup2(broken, journal.tail.handle or 0)
    os.close(broken)
    waiting = [
        submitted(engine, a_placing(a_buy("alice", salt=str(number)))) for number in range(3)
    ]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [EngineStopped] * 3
    assert not published
    assert engine.failed.is_set()
    assert not engine.is_ready
    with pytest.raises(EngineStopped, match="Bad file descriptor"):
        await engine.submit(a_placing(a_buy("alice", salt="9")))
    await engine.close()


async def test_an_unexpected_error_stops_the_engine(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        command = a_placing(a_buy("alice"))
        odd_tick = msgspec.structs.replace(command.terms, ticks_per_one=3)
        with pytest.raises(AssertionError):
            await engine.submit(msgspec.structs.replace(command, terms=odd_tick))
        with pytest.raises(EngineStopped, match="AssertionError while applying"):
            await engine.submit(command)


async def test_a_command_that_the_journal_cannot_hold_stops_the_engine(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        too_many = some_funds(*(f"trader {number}" for number in range(200)))
        assert len(encode_command(too_many)) > SEGMENT_BYTES
        with pytest.raises(AssertionError):
            await engine.submit(too_many)
        assert engine.failed.is_set()
        with pytest.raises(EngineStopped, match="AssertionError while writing"):
            await engine.submit(a_placing(a_buy("alice")))
    async with an_engine(tmp_path) as engine:
        assert engine.sequence == 2


async def test_more_commands_than_may_wait_are_refused(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path) as engine:
        waiting = [engine.submit(a_placing(a_buy("alice")))]
        nothing = CancelOrders(NOW_MS, an_address("alice"), ())
        waiting += [engine.submit(nothing) for _ in range(WAITING_MAX - 1)]
        for coroutine in waiting:
            coroutine.send(None)
        with pytest.raises(EngineBusy):
            await engine.submit(nothing)
        for coroutine in waiting:
            coroutine.close()


async def test_an_expired_order_is_never_matched(tmp_path: Path) -> None:
    clock = Clock()
    async with a_trading_engine(tmp_path, clock) as engine:
        resting = a_sell("bob", expiration_s=NOW_S + 100)
        await place(engine, a_placing(resting, OrderType.GTD))
        clock.move(40_000)
        taking = a_placing(a_buy("alice"), at_ms=engine.clock_ms())
        assert (await place(engine, taking)).status is OrderStatus.LIVE
        assert an_order_id(resting) not in engine.state.live_orders
        before = digest(engine.state)
    async with an_engine(tmp_path) as engine:
        assert digest(engine.state) == before


async def test_expired_orders_are_closed_by_the_loop(tmp_path: Path) -> None:
    clock = Clock()
    async with a_trading_engine(tmp_path, clock) as engine:
        await place(engine, a_placing(a_sell("bob", expiration_s=NOW_S + 100), OrderType.GTD))
        assert not await engine.expire()
        assert engine.state.live_orders
        clock.move(40_000)
        assert not await engine.expire()
        assert not engine.state.live_orders


async def test_the_time_of_commands_never_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    async with a_trading_engine(tmp_path, clock) as engine:
        clock.move(5_000)
        assert engine.clock_ms() == NOW_MS + 5_000
        await place(engine, a_placing(a_buy("alice"), at_ms=engine.clock_ms()))
        clock.move(-60_000)
        assert engine.clock_ms() == NOW_MS + 5_000
    async with an_engine(tmp_path, clock) as engine:
        assert engine.clock_ms() == NOW_MS + 5_000


async def test_after_a_restart_the_api_answers_as_before(
    database_file: Path, tmp_path: Path
) -> None:
    order = a_buy("alice", price_ticks=40)
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market", "alice", "bob")
        alice = await rig.trader("alice")
        first = await alice.placed(order)
        query = {"token_id": order.token_id}
        book = (await rig.client.get("/book", params=query)).json()
    async with a_rig(tmp_path / "journal", database_file) as rig:
        alice.rig = rig
        assert (await rig.client.get("/book", params=query)).json() == book
        assert first_answer(await alice.placed(order)) == first
        assert [entry["id"] for entry in (await alice.get("/data/orders"))["data"]] == [
            first["orderID"]
        ]


def published(user: UserChannel) -> dict[Bytes32, tuple[OrderView, int, tuple[str, ...]]]:
    """Return the live orders as subscribers would get them."""
    return {
        order_id: (live.view(), live.matched_units, live.trade_ids)
        for order_id, live in user.live_orders.items()
    }


async def test_after_a_restart_from_a_snapshot_the_api_and_the_streams_continue(
    database_file: Path, tmp_path: Path
) -> None:
    order, taker = a_buy(price_ticks=40), a_sell("bob", price_ticks=40, size_units=6 * TOKEN)
    query = {"token_id": order.token_id}
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market", "alice", "bob")
        alice, bob = await rig.trader("alice"), await rig.trader("bob")
        await alice.placed(order)
        await bob.placed(taker)
        await rig.settle_tables()
        book = (await rig.client.get("/book", params=query)).json()
        user = rig.context.streams.user
        streamed = (
            published(user),
            dict(user.unsettled_trades),
        )
        await snapshot_now(rig.host.engine)
    async with a_rig(tmp_path / "journal", database_file) as rig:
        assert (await rig.client.get("/book", params=query)).json() == book
        user = rig.context.streams.user
        unsettled = {
            key: msgspec.structs.replace(each, sequence=rig.host.engine.sequence)
            for key, each in user.unsettled_trades.items()
        }
        assert (published(user), unsettled) == streamed
        market = rig.context.streams.market
        assert [top.best_bid_ticks for top in market.top_by_market.values()] == [40]
        bob.rig = alice.rig = rig
        assert (await bob.placed(a_sell("bob", price_ticks=40, salt="2")))["status"] == "live"
        await rig.settle_tables()
        assert len((await alice.get("/data/trades"))["data"]) == 2


def crash(folder: Path, first: int, acknowledgements: int) -> list[str]:
    """Run a process that places orders, kill it in the middle, and return what it acknowledged."""
    with subprocess.Popen(
        [sys.executable, str(CRASHING), str(folder), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    ) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(acknowledgements)]
        process.kill()
        seen += [line.strip() for line in process.stdout if line.endswith("\n")]
    return seen


async def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    async with a_trading_engine(tmp_path):
        pass
    acknowledged: list[str] = []
    for cycle, count in enumerate((1, 7, 40)):
        acknowledged += await asyncio.to_thread(crash, tmp_path, cycle * 100_000, count)
    async with an_engine(tmp_path) as engine:
        assert len(acknowledged) == len(set(acknowledged)) >= 48
        assert set(acknowledged) <= set(engine.state.placement_by_order)
        assert set(engine.state.live_orders) == set(engine.state.placement_by_order)

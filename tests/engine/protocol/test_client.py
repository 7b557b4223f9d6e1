import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from tests.engine.rig import INSTALLATION_TOKEN, SOON_S, until
from tests.rigs.disks import SmallDisk
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_word,
    an_address,
    an_open_market,
    an_order_id,
    some_rules,
)
from typing_extensions import override

from foretell.app.engine_sockets import UNIX, connect, listen
from foretell.domain.errors.exchange import (
    AnswerLost,
    EngineReadOnly,
    EngineRestarting,
    EngineStalled,
    InsufficientBalance,
)
from foretell.domain.exchange.commands import ChangeTick
from foretell.domain.exchange.effects import (
    BookChanged,
    Effect,
    MarketRestored,
    OrderFilled,
    OrderPlaced,
    OrderRestored,
    TickChanged,
)
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.protocol.client import LIMITS, ClientLimits, RemoteShard
from foretell.engine.protocol.messages import VERSION, Hello, Ping, StateEnd, frame
from foretell.engine.protocol.requests import (
    CancelOrdersReply,
    CancelOrdersRequest,
    CommittedCommand,
    EngineReply,
    EngineRequest,
    FindPlacementReply,
    FindPlacementRequest,
    PlaceReply,
    PlaceRequest,
)
from foretell.engine.server import EngineServer, _Peer
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio

SILENT_S = 1.0
IMPATIENT = LIMITS._replace(held_s=0.3)
"""A test of a lost engine need not wait longer."""
PATIENT = LIMITS._replace(held_s=SOON_S)
PINGING = IMPATIENT._replace(silent_s=SILENT_S)


class Recorder:
    """A subscriber that records the effects of an engine since its state began."""

    def __init__(self) -> None:
        self.begins = 0
        self.effects: list[Effect] = []

    def begin(self) -> None:
        self.begins += 1
        self.effects.clear()

    def on_committed(self, committed: CommittedCommand) -> None:
        self.effects += committed.effects

    def of(self, kind: type[Effect]) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]


@contextlib.asynccontextmanager
async def listening(server: EngineServer, path: Path) -> AsyncIterator[None]:
    taking = await listen(server.connection, path, None)
    try:
        yield
    finally:
        await taking.close()


@contextlib.asynccontextmanager
async def a_client(
    path: Path,
    recorder: Recorder | None = None,
    token: bytes = INSTALLATION_TOKEN,
    limits: ClientLimits = IMPATIENT,
) -> AsyncIterator[RemoteShard]:
    """Yield a client of an engine, which keeps its connection until the block ends."""

    async def find() -> str:
        return f"{UNIX}{path}"

    shard = RemoteShard(partial(connect, find), token, recorder, limits=limits)
    running = asyncio.create_task(shard.run())
    try:
        yield shard
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "socket"


@pytest.fixture
async def server(rig: TradingRig, path: Path) -> AsyncIterator[EngineServer]:
    """The rig's engine, at a socket for other processes."""
    await rig.open_in_memory("market", "alice", "bob")
    server = EngineServer(INSTALLATION_TOKEN)
    server.open(rig.host, rig.host.engine)
    async with listening(server, path):
        yield server


@pytest.fixture
async def shard(server: EngineServer, path: Path) -> AsyncIterator[RemoteShard]:
    assert server.endpoint is not None
    async with a_client(path) as shard:
        await ready(shard)
        yield shard


@pytest.fixture
async def pinging(server: EngineServer, path: Path) -> AsyncIterator[RemoteShard]:
    """A client that soon pings a silent engine, and soon disconnects from it."""
    assert server.endpoint is not None
    async with a_client(path, limits=PINGING) as shard:
        await ready(shard)
        yield shard


@pytest.fixture
def stalling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build an engine that soon refuses commands that wait for a full disk."""
    impatient = partial(Engine, stalled_after_s=2 * SILENT_S)
    monkeypatch.setattr("foretell.app.embedded.Engine", impatient)


@pytest.fixture
def disk(rig: TradingRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    """The disk of the rig's journal, which has room again when the test ends."""
    assert isinstance(rig.host.engine.journal, FileJournal)
    rig.host.engine.journal.group_commit.full_retry_s = 0.01
    disk = SmallDisk(tmp_path / "journal", monkeypatch)
    yield disk
    disk.heal()


async def ready(shard: RemoteShard) -> None:
    async with asyncio.timeout(SOON_S):
        await shard.ready.wait()


async def test_an_order_is_placed_once_however_often_it_is_sent(
    rig: TradingRig, shard: RemoteShard
) -> None:
    command = a_placing(a_buy("alice"))
    first, second = [await shard.handle(PlaceRequest(command)) for _ in range(2)]
    assert isinstance(first, PlaceReply)
    assert isinstance(second, PlaceReply)
    assert (first.is_known, second.is_known) == (False, True)
    assert first.placement == second.placement
    assert list(rig.host.engine.state.live_orders) == [command.order_id]


async def test_an_order_gets_the_engines_time(rig: TradingRig, shard: RemoteShard) -> None:
    rig.clock.move(5_000)
    command = a_placing(a_buy("alice"))
    await shard.handle(PlaceRequest(command))
    assert rig.host.engine.state.live_orders[command.order_id].placed_at_ms == rig.clock.at_ms


async def test_a_refusal_arrives_as_it_was_raised(shard: RemoteShard) -> None:
    with pytest.raises(InsufficientBalance) as refusal:
        await shard.handle(PlaceRequest(a_placing(a_buy("dora"))))
    assert refusal.value.code == "insufficient_balance"
    assert refusal.value.details["have"] == 0
    assert "does not hold as much" in refusal.value.message


async def test_many_requests_wait_at_once_and_each_gets_its_own_reply(
    shard: RemoteShard,
) -> None:
    orders = [a_buy("alice", price_ticks=ticks) for ticks in range(10, 30)]
    replies = await asyncio.gather(
        *(shard.handle(PlaceRequest(a_placing(order))) for order in orders)
    )
    ids = [reply.placement.order_id for reply in replies if isinstance(reply, PlaceReply)]
    assert ids == [an_order_id(order) for order in orders]


async def test_a_subscriber_gets_the_state_and_then_its_changes(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    assert server.endpoint is not None
    resting = await rig.rest(a_sell("bob", price_ticks=60))
    recorder = Recorder()
    async with a_client(path, recorder) as shard:
        await ready(shard)
        assert recorder.begins == 1
        assert len(recorder.of(MarketRestored)) == 1
        assert [each.order_id for each in recorder.of(OrderRestored)] == [resting]  # type: ignore[union-attr]
        assert recorder.of(OrderPlaced) == []
        await shard.handle(PlaceRequest(a_placing(a_buy("alice"))))
        assert len(recorder.of(OrderPlaced)) == 1


async def test_a_subscriber_that_connects_while_orders_are_placed_gets_each_once(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    assert server.endpoint is not None
    orders = [a_buy("alice", price_ticks=10, salt=str(number)) for number in range(60)]
    placing = [asyncio.create_task(rig.rest(order)) for order in orders[:40]]
    await asyncio.sleep(0)
    recorder = Recorder()
    async with a_client(path, recorder) as shard:
        placing += [asyncio.create_task(rig.rest(order)) for order in orders[40:]]
        await asyncio.gather(*placing)
        await ready(shard)
        restored = [each.order_id for each in recorder.of(OrderRestored)]  # type: ignore[union-attr]
        placed = [each.command.order_id for each in recorder.of(OrderPlaced)]  # type: ignore[union-attr]
    assert sorted(restored + placed) == sorted(an_order_id(order) for order in orders)


async def test_orders_are_placed_while_a_state_of_many_messages_is_sent(
    rig: TradingRig, server: EngineServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order that is filled during this is sent as it was before, and then its fill."""
    server.effects_per_message = 1
    for number in range(40):
        await rig.rest(a_sell("bob", price_ticks=60, salt=str(number)))
    buy = a_buy("alice", price_ticks=60, size_units=5 * TOKEN)
    buying: list[asyncio.Task[object]] = []
    subscribe = server.subscribe

    def subscribe_and_buy(peer: _Peer) -> None:
        subscribe(peer)
        buying.append(asyncio.create_task(rig.rest(buy)))

    monkeypatch.setattr(server, "subscribe", subscribe_and_buy)
    recorder = Recorder()
    async with a_client(path, recorder) as shard:
        await ready(shard)
        await asyncio.gather(*buying)
        await until(lambda: bool(recorder.of(OrderFilled)))
    restored = recorder.of(OrderRestored)
    assert [each.matched_units for each in restored] == [0] * 40  # type: ignore[union-attr]
    assert [type(each) for each in recorder.effects[-2:]] == [OrderFilled, BookChanged]


async def test_a_lost_connection_is_made_again_and_the_state_sent_again(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    recorder = Recorder()
    async with a_client(path, recorder) as shard:
        await ready(shard)
        await rig.rest(a_buy("alice"))
        (peer,) = server.subscribers
        peer.disconnect()
        await until(lambda: recorder.begins == 2)
        await ready(shard)
        assert len(recorder.of(OrderRestored)) == 1
        assert recorder.of(OrderPlaced) == []


async def test_a_client_of_another_installation_is_disconnected(
    server: EngineServer, path: Path
) -> None:
    recorder = Recorder()
    async with a_client(path, recorder, b"another token") as shard:
        await asyncio.sleep(0.2)
        assert not shard.ready.is_set()
        with pytest.raises(EngineRestarting):
            await shard.handle(FindPlacementRequest(an_order_id(a_buy("alice"))))
    assert not server.subscribers


@pytest.mark.parametrize(
    "sent", [b"\xff\xff\xff\xffxxxx", b"\x02\x00\x00\x00\xc1\xc1", frame(Ping())]
)
async def test_a_client_that_sends_nonsense_is_disconnected(
    server: EngineServer, path: Path, sent: bytes
) -> None:
    assert server.endpoint is not None
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(sent)
    async with asyncio.timeout(SOON_S):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()


async def test_a_client_of_another_version_is_disconnected(
    server: EngineServer, path: Path
) -> None:
    assert server.endpoint is not None
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(frame(Hello(VERSION + 1, INSTALLATION_TOKEN, subscribes=False)))
    async with asyncio.timeout(SOON_S):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()


async def test_while_no_engine_listens_requests_are_refused_as_at_a_start(path: Path) -> None:
    async with a_client(path) as shard:
        with pytest.raises(EngineRestarting):
            await shard.handle(FindPlacementRequest(an_order_id(a_buy("alice"))))


async def test_an_engine_that_has_not_started_is_connected_to_later(
    rig: TradingRig, path: Path
) -> None:
    server = EngineServer(INSTALLATION_TOKEN)
    async with listening(server, path), a_client(path) as shard:
        await asyncio.sleep(0.1)
        assert not shard.ready.is_set()
        server.open(rig.host, rig.host.engine)
        await ready(shard)
        found = await shard.handle(FindPlacementRequest(an_order_id(a_buy("alice"))))
        assert found == FindPlacementReply(None)


async def test_a_request_waits_a_while_for_an_engine_that_is_lost(
    rig: TradingRig, path: Path
) -> None:
    server = EngineServer(INSTALLATION_TOKEN)
    async with a_client(path, limits=PATIENT) as shard:
        asking = asyncio.create_task(
            shard.handle(FindPlacementRequest(an_order_id(a_buy("alice"))))
        )
        await asyncio.sleep(0.05)
        server.open(rig.host, rig.host.engine)
        async with listening(server, path):
            assert await asking == FindPlacementReply(None)


async def test_no_more_requests_wait_than_the_limit(path: Path) -> None:
    async with a_client(path, limits=PATIENT._replace(held_max=1)) as shard:
        request = FindPlacementRequest(an_order_id(a_buy("alice")))
        waiting = asyncio.create_task(shard.handle(request))
        await asyncio.sleep(0)
        with pytest.raises(EngineRestarting):
            await shard.handle(request)
        waiting.cancel()


async def test_an_engine_that_stays_lost_is_logged_once_until_it_is_back(
    rig: TradingRig, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, printed = EngineServer(INSTALLATION_TOKEN), list[str]()

    def logged() -> list[str]:
        printed.extend(capsys.readouterr().out.splitlines())
        return [line for line in printed if "loop=" in line]

    async with a_client(path, limits=LIMITS._replace(held_s=0.01)) as shard:
        await until(lambda: bool(logged()))
        await asyncio.sleep(0.5)
        server.open(rig.host, rig.host.engine)
        async with listening(server, path):
            await ready(shard)
    (begun, over) = logged()
    assert "connection to engine" in begun
    assert "works again" in over


async def lose_the_first_reply(
    rig: TradingRig, server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have the engine handle the first request, and disconnect instead of replying."""
    handle = rig.host.handle
    is_first = True

    async def lose(request: EngineRequest) -> EngineReply:
        nonlocal is_first
        reply = await handle(request)
        if is_first:
            is_first = False
            for peer in list(server.peers):
                peer.disconnect()
            await asyncio.sleep(SOON_S)
        return reply

    monkeypatch.setattr(rig.host, "handle", lose)


async def test_a_finer_tick_is_published_and_restored(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    recorder = Recorder()
    async with a_client(path, recorder) as shard:
        await ready(shard)
        await rig.submit(ChangeTick(NOW_MS, a_word("market"), 1_000))
        await until(lambda: bool(recorder.of(TickChanged)))
        for peer in list(server.peers):
            peer.disconnect()
        await until(lambda: recorder.begins == 2 and bool(recorder.of(MarketRestored)))
    assert recorder.of(MarketRestored) == [
        MarketRestored(
            market=an_open_market(),
            rules=some_rules(1_000),
            is_open=True,
            levels=(),
            best_bid_ticks=None,
            best_ask_ticks=None,
            last_price_ticks=None,
            last_side=None,
            changed_at_ms=NOW_MS,
        )
    ]


async def test_an_order_whose_reply_was_lost_is_sent_again(
    rig: TradingRig, server: EngineServer, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lose_the_first_reply(rig, server, monkeypatch)
    placed = await shard.handle(PlaceRequest(a_placing(a_buy("alice"))))
    assert isinstance(placed, PlaceReply)
    assert placed.is_known
    assert len(rig.host.engine.state.live_orders) == 1


async def test_the_outcome_of_a_cancel_whose_reply_was_lost_is_unknown(
    rig: TradingRig, server: EngineServer, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await rig.rest(a_buy("alice"))
    await lose_the_first_reply(rig, server, monkeypatch)
    with pytest.raises(AnswerLost) as lost:
        await shard.handle(CancelOrdersRequest(an_address("alice"), [order_id]))
    assert not lost.value.definite
    await ready(shard)
    again = await shard.handle(CancelOrdersRequest(an_address("alice"), [order_id]))
    assert isinstance(again, CancelOrdersReply)
    assert list(again.not_canceled) == [order_id]


class Silent(asyncio.Protocol):
    """An engine that takes connections and answers nothing, or the first message with a greeting."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._transport.write(self._greeting)
        self._greeting = b""


@pytest.mark.parametrize("greeting", [b"", frame(StateEnd())], ids=["ungreeted", "greeted"])
async def test_a_silent_engine_is_left_for_the_one_that_leads_next(
    rig: TradingRig, server: EngineServer, path: Path, greeting: bytes
) -> None:
    """A stopped process keeps its connections, and answers nothing."""
    assert server.endpoint is rig.host
    silent = path.with_name("silent")
    leads = [silent, path]

    async def find() -> str:
        return f"{UNIX}{leads.pop(0)}"

    stopped = await listen(lambda: Silent(greeting), silent, None)
    shard = RemoteShard(
        partial(connect, find), INSTALLATION_TOKEN, limits=PINGING._replace(held_s=SOON_S)
    )
    running = asyncio.create_task(shard.run())
    placed = await shard.handle(PlaceRequest(a_placing(a_buy("alice"))))
    assert isinstance(placed, PlaceReply)
    assert len(rig.host.engine.state.live_orders) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await stopped.close()


async def test_an_engine_that_owes_nothing_keeps_its_connection(pinging: RemoteShard) -> None:
    connection = pinging.connection
    await asyncio.sleep(2 * SILENT_S)
    assert pinging.connection is connection


async def test_a_reply_that_takes_long_is_waited_for(
    rig: TradingRig, pinging: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await rig.rest(a_buy("alice"))
    handle = rig.host.handle

    async def take_long(request: EngineRequest) -> EngineReply:
        await asyncio.sleep(2 * SILENT_S)
        return await handle(request)

    monkeypatch.setattr(rig.host, "handle", take_long)
    reply = await pinging.handle(CancelOrdersRequest(an_address("alice"), [order_id]))
    assert isinstance(reply, CancelOrdersReply)
    assert list(reply.canceled) == [order_id]


async def test_a_state_that_waits_for_its_disk_is_waited_for(
    rig: TradingRig, server: EngineServer, disk: SmallDisk, path: Path
) -> None:
    assert server.endpoint is not None
    resting = await become_full(rig, disk)
    recorder = Recorder()
    async with a_client(path, recorder, limits=PINGING) as shard:
        await until(lambda: shard.connection is not None)
        connection = shard.connection
        await asyncio.sleep(2 * SILENT_S)
        assert not shard.ready.is_set()
        disk.heal()
        await ready(shard)
        assert shard.connection is connection
    assert [each.order_id for each in recorder.of(OrderRestored)] == [await resting]  # type: ignore[union-attr]


@pytest.mark.usefixtures("stalling")
async def test_a_subscriber_whose_state_does_not_become_durable_connects_again(
    rig: TradingRig, server: EngineServer, disk: SmallDisk, path: Path
) -> None:
    assert server.endpoint is not None
    resting = await become_full(rig, disk)
    recorder = Recorder()
    async with a_client(path, recorder) as shard:
        await until(lambda: shard.connection is not None)
        connection = shard.connection
        await until(lambda: shard.connection not in (None, connection))
        disk.heal()
        await ready(shard)
        await until(lambda: len(recorder.of(OrderRestored)) == 1)
    with pytest.raises(EngineStalled):
        await resting


@pytest.mark.usefixtures("stalling")
async def test_while_the_disk_is_full_requests_are_refused_on_the_same_connection(
    rig: TradingRig, pinging: RemoteShard, disk: SmallDisk
) -> None:
    connection = pinging.connection
    order_id = await rig.rest(a_buy("alice"))
    disk.takes_writes = False
    with pytest.raises(EngineStalled):
        await pinging.handle(CancelOrdersRequest(an_address("alice"), [order_id]))
    with pytest.raises(EngineReadOnly):
        await pinging.handle(PlaceRequest(a_placing(a_buy("alice", price_ticks=11))))
    assert pinging.connection is connection


async def become_full(rig: TradingRig, disk: SmallDisk) -> "asyncio.Task[Bytes32]":
    """Place an order on a disk that takes nothing; return the task that waits for it."""
    disk.takes_writes = False
    resting = asyncio.create_task(rig.rest(a_buy("alice")))
    await until(lambda: disk.refusals > 0)
    return resting


async def test_tables_are_waited_for_in_the_engines_process(
    rig: TradingRig, shard: RemoteShard, alice: Trader
) -> None:
    await alice.placed(a_buy("alice"))
    await shard.wait_for_tables()
    assert rig.host.projection.sequence == rig.host.engine.published_sequence


async def test_an_unexpected_error_is_refused_without_its_message(
    rig: TradingRig, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: EngineRequest) -> EngineReply:
        raise RuntimeError("a secret")

    monkeypatch.setattr(rig.host, "handle", fail)
    with pytest.raises(Exception, match="the matching engine failed"):
        await shard.handle(FindPlacementRequest(an_order_id(a_buy("alice"))))

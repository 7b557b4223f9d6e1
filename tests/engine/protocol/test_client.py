import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from tests.journal.small_disk import SmallDisk
from tests.rigs.values import (
    NOW_MS,
    a_buy,
    a_placing,
    a_sell,
    a_word,
    an_address,
    an_open_market,
    an_order_id,
    some_rules,
)
from tests.rigs.values import TOKEN as TOKEN_UNITS
from tests.trading.rig import Trader, TradingRig
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
from foretell.engine import server as serving
from foretell.engine.protocol.client import RemoteShard
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

pytestmark = pytest.mark.anyio

TOKEN = b"the token of this installation"
SOON_S = 10.0
SILENT_S = 0.3


class Recorder:
    """Everything that was heard of an engine since it began."""

    def __init__(self) -> None:
        self.begun = 0
        self.effects: list[Effect] = []

    def begin(self) -> None:
        self.begun += 1
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
async def line_to(
    path: Path, heard: Recorder | None = None, token: bytes = TOKEN
) -> AsyncIterator[RemoteShard]:
    """Give an engine's remote end, whose line is kept until the block ends."""

    async def find() -> str:
        return f"{UNIX}{path}"

    shard = RemoteShard(partial(connect, find), token, heard)
    running = asyncio.create_task(shard.run())
    try:
        yield shard
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have lost engines waited for as long as a test may take."""
    monkeypatch.setattr("foretell.engine.protocol.client.HELD_S", 0.3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "socket"


@pytest.fixture
async def server(rig: TradingRig, path: Path) -> AsyncIterator[EngineServer]:
    """The venue's engine, open to others at a socket."""
    await rig.open_in_memory("market", "alice", "bob")
    server = EngineServer(TOKEN)
    server.open(rig.host, rig.host.engine)
    async with listening(server, path):
        yield server


@pytest.fixture
async def shard(server: EngineServer, path: Path) -> AsyncIterator[RemoteShard]:
    assert server.host is not None
    async with line_to(path) as shard:
        await begun(shard)
        yield shard


@pytest.fixture
def pinging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have engines left that say nothing for less long than a test may take."""
    monkeypatch.setattr("foretell.engine.protocol.client.SILENT_S", SILENT_S)


@pytest.fixture
def stalling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait for a full disk as long as the venue does that is built after this."""
    monkeypatch.setattr("foretell.engine.writer.engine.STALLED_AFTER_S", 2 * SILENT_S)


@pytest.fixture
def disk(rig: TradingRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    """The disk of the venue's journal, which has room again when the test ends."""
    assert rig.host.engine.is_ready
    monkeypatch.setattr("foretell.journal.files.journal.FULL_RETRY_S", 0.01)
    disk = SmallDisk(tmp_path / "journal", monkeypatch)
    yield disk
    disk.heal()


async def begun(shard: RemoteShard) -> None:
    async with asyncio.timeout(SOON_S):
        await shard.begun.wait()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.005)


async def test_an_order_is_placed_once_however_often_it_is_asked_for(
    rig: TradingRig, shard: RemoteShard
) -> None:
    command = a_placing(a_buy("alice"))
    first, second = [await shard.ask(PlaceRequest(command)) for _ in range(2)]
    assert isinstance(first, PlaceReply)
    assert isinstance(second, PlaceReply)
    assert (first.is_known, second.is_known) == (False, True)
    assert first.placement == second.placement
    assert list(rig.host.engine.state.live_orders) == [command.order_id]


async def test_an_order_gets_the_engines_time(rig: TradingRig, shard: RemoteShard) -> None:
    rig.clock.move(5_000)
    command = a_placing(a_buy("alice"))
    await shard.ask(PlaceRequest(command))
    assert rig.host.engine.state.live_orders[command.order_id].placed_at_ms == rig.clock.at_ms


async def test_a_refusal_comes_as_it_was_raised(shard: RemoteShard) -> None:
    with pytest.raises(InsufficientBalance) as refusal:
        await shard.ask(PlaceRequest(a_placing(a_buy("dora"))))
    assert refusal.value.code == "insufficient_balance"
    assert refusal.value.details["have"] == 0
    assert "does not hold as much" in refusal.value.message


async def test_many_questions_wait_at_once_and_each_gets_its_own_answer(
    shard: RemoteShard,
) -> None:
    orders = [a_buy("alice", price_ticks=ticks) for ticks in range(10, 30)]
    answers = await asyncio.gather(*(shard.ask(PlaceRequest(a_placing(order))) for order in orders))
    ids = [answer.placement.order_id for answer in answers if isinstance(answer, PlaceReply)]
    assert ids == [an_order_id(order) for order in orders]


async def test_who_hears_gets_what_is_there_and_then_what_comes(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    assert server.host is not None
    resting = await rig.rest(a_sell("bob", price_ticks=60))
    heard = Recorder()
    async with line_to(path, heard) as shard:
        await begun(shard)
        assert heard.begun == 1
        assert len(heard.of(MarketRestored)) == 1
        assert [each.order_id for each in heard.of(OrderRestored)] == [resting]  # type: ignore[union-attr]
        assert heard.of(OrderPlaced) == []
        await shard.ask(PlaceRequest(a_placing(a_buy("alice"))))
        assert len(heard.of(OrderPlaced)) == 1


async def test_who_comes_while_orders_are_placed_misses_none_and_hears_none_twice(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    assert server.host is not None
    orders = [a_buy("alice", price_ticks=10, salt=str(number)) for number in range(60)]
    placing = [asyncio.create_task(rig.rest(order)) for order in orders[:40]]
    await asyncio.sleep(0)
    heard = Recorder()
    async with line_to(path, heard) as shard:
        placing += [asyncio.create_task(rig.rest(order)) for order in orders[40:]]
        await asyncio.gather(*placing)
        await begun(shard)
        restored = [each.order_id for each in heard.of(OrderRestored)]  # type: ignore[union-attr]
        placed = [each.command.order_id for each in heard.of(OrderPlaced)]  # type: ignore[union-attr]
    assert sorted(restored + placed) == sorted(an_order_id(order) for order in orders)


async def test_orders_are_placed_while_somebody_is_told_of_a_state_in_many_messages(
    rig: TradingRig, server: EngineServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is filled or canceled meanwhile is told as it was, and then what became of it."""
    monkeypatch.setattr(serving, "EFFECTS_PER_MESSAGE", 1)
    for number in range(40):
        await rig.rest(a_sell("bob", price_ticks=60, salt=str(number)))
    buy = a_buy("alice", price_ticks=60, size_units=5 * TOKEN_UNITS)
    buying: list[asyncio.Task[object]] = []
    join = server.join

    def join_and_buy(peer: _Peer) -> None:
        join(peer)
        buying.append(asyncio.create_task(rig.rest(buy)))

    monkeypatch.setattr(server, "join", join_and_buy)
    heard = Recorder()
    async with line_to(path, heard) as shard:
        await begun(shard)
        await asyncio.gather(*buying)
        await until(lambda: bool(heard.of(OrderFilled)))
    restored = heard.of(OrderRestored)
    assert [each.matched_units for each in restored] == [0] * 40  # type: ignore[union-attr]
    assert [type(each) for each in heard.effects[-2:]] == [OrderFilled, BookChanged]


async def test_a_lost_line_is_made_again_and_everything_told_anew(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    heard = Recorder()
    async with line_to(path, heard) as shard:
        await begun(shard)
        await rig.rest(a_buy("alice"))
        (peer,) = server._subscribers
        peer.disconnect()
        await until(lambda: heard.begun == 2)
        await begun(shard)
        assert len(heard.of(OrderRestored)) == 1
        assert heard.of(OrderPlaced) == []


async def test_who_greets_as_another_installation_is_hung_up_on(
    server: EngineServer, path: Path
) -> None:
    heard = Recorder()
    async with line_to(path, heard, b"another token") as shard:
        await asyncio.sleep(0.2)
        assert not shard.begun.is_set()
        with pytest.raises(EngineRestarting):
            await shard.ask(FindPlacementRequest(an_order_id(a_buy("alice"))))
    assert not server._subscribers


@pytest.mark.parametrize(
    "said", [b"\xff\xff\xff\xffxxxx", b"\x02\x00\x00\x00\xc1\xc1", frame(Ping())]
)
async def test_who_speaks_nonsense_is_hung_up_on(
    server: EngineServer, path: Path, said: bytes
) -> None:
    assert server.host is not None
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(said)
    async with asyncio.timeout(SOON_S):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()


async def test_a_question_before_the_greeting_is_not_answered(
    server: EngineServer, path: Path
) -> None:
    assert server.host is not None
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(frame(Hello(VERSION + 1, TOKEN, subscribes=False)))
    async with asyncio.timeout(SOON_S):
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()


async def test_while_no_engine_listens_questions_are_refused_as_at_a_start(path: Path) -> None:
    async with line_to(path) as shard:
        with pytest.raises(EngineRestarting):
            await shard.ask(FindPlacementRequest(an_order_id(a_buy("alice"))))


async def test_an_engine_that_has_not_started_is_asked_again_later(
    rig: TradingRig, path: Path
) -> None:
    server = EngineServer(TOKEN)
    async with listening(server, path), line_to(path) as shard:
        await asyncio.sleep(0.1)
        assert not shard.begun.is_set()
        server.open(rig.host, rig.host.engine)
        await begun(shard)
        found = await shard.ask(FindPlacementRequest(an_order_id(a_buy("alice"))))
        assert found == FindPlacementReply(None)


async def test_a_question_waits_a_while_for_an_engine_that_is_lost(
    rig: TradingRig, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretell.engine.protocol.client.HELD_S", SOON_S)
    server = EngineServer(TOKEN)
    async with line_to(path) as shard:
        asking = asyncio.create_task(shard.ask(FindPlacementRequest(an_order_id(a_buy("alice")))))
        await asyncio.sleep(0.05)
        server.open(rig.host, rig.host.engine)
        async with listening(server, path):
            assert await asking == FindPlacementReply(None)


async def test_no_more_questions_wait_than_the_limit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretell.engine.protocol.client.HELD_MAX", 0)
    monkeypatch.setattr("foretell.engine.protocol.client.HELD_S", SOON_S)
    async with line_to(path) as shard:
        with pytest.raises(EngineRestarting):
            await shard.ask(FindPlacementRequest(an_order_id(a_buy("alice"))))


async def lose_the_first_answer(
    rig: TradingRig, server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have the engine do the first thing that it is asked, and hang up instead of answering."""
    ask = rig.host.ask
    is_first = True

    async def lose(question: EngineRequest) -> EngineReply:
        nonlocal is_first
        answer = await ask(question)
        if is_first:
            is_first = False
            for peer in list(server.peers):
                peer.disconnect()
            await asyncio.sleep(SOON_S)
        return answer

    monkeypatch.setattr(rig.host, "ask", lose)


async def test_a_finer_tick_is_heard_and_restored(
    rig: TradingRig, server: EngineServer, path: Path
) -> None:
    heard = Recorder()
    async with line_to(path, heard) as shard:
        await begun(shard)
        await rig.submit(ChangeTick(NOW_MS, a_word("market"), 1_000))
        await until(lambda: bool(heard.of(TickChanged)))
        for peer in list(server.peers):
            peer.disconnect()
        await until(lambda: heard.begun == 2 and bool(heard.of(MarketRestored)))
    assert heard.of(MarketRestored) == [
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


async def test_an_order_whose_answer_was_lost_is_asked_for_again(
    rig: TradingRig, server: EngineServer, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lose_the_first_answer(rig, server, monkeypatch)
    placed = await shard.ask(PlaceRequest(a_placing(a_buy("alice"))))
    assert isinstance(placed, PlaceReply)
    assert placed.is_known
    assert len(rig.host.engine.state.live_orders) == 1


async def test_of_anything_else_whose_answer_was_lost_the_outcome_is_not_known(
    rig: TradingRig, server: EngineServer, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await rig.rest(a_buy("alice"))
    await lose_the_first_answer(rig, server, monkeypatch)
    with pytest.raises(AnswerLost) as lost:
        await shard.ask(CancelOrdersRequest(an_address("alice"), [order_id]))
    assert not lost.value.definite
    await begun(shard)
    again = await shard.ask(CancelOrdersRequest(an_address("alice"), [order_id]))
    assert isinstance(again, CancelOrdersReply)
    assert list(again.not_canceled) == [order_id]


class Silent(asyncio.Protocol):
    """An engine that takes connections and says no more than it has greeted, if it has."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._greeting)


@pytest.mark.usefixtures("pinging")
@pytest.mark.parametrize("greeting", [b"", frame(StateEnd())], ids=["ungreeted", "greeted"])
async def test_an_engine_that_is_silent_is_left_for_the_one_that_leads_then(
    rig: TradingRig,
    server: EngineServer,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    greeting: bytes,
) -> None:
    """A stopped process keeps its connections, and answers nothing."""
    assert server.host is rig.host
    monkeypatch.setattr("foretell.engine.protocol.client.HELD_S", SOON_S)
    silent = path.with_name("silent")
    leads = [silent, path]

    async def find() -> str:
        return f"{UNIX}{leads.pop(0)}"

    stopped = await listen(lambda: Silent(greeting), silent, None)
    shard = RemoteShard(partial(connect, find), TOKEN)
    running = asyncio.create_task(shard.run())
    placed = await shard.ask(PlaceRequest(a_placing(a_buy("alice"))))
    assert isinstance(placed, PlaceReply)
    assert len(rig.host.engine.state.live_orders) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await stopped.close()


@pytest.mark.usefixtures("pinging")
async def test_an_engine_that_owes_nothing_may_be_silent(shard: RemoteShard) -> None:
    line = shard._line
    await asyncio.sleep(2 * SILENT_S)
    assert shard._line is line


@pytest.mark.usefixtures("pinging")
async def test_an_answer_that_takes_long_is_waited_for(
    rig: TradingRig, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await rig.rest(a_buy("alice"))
    ask = rig.host.ask

    async def take_long(question: EngineRequest) -> EngineReply:
        await asyncio.sleep(2 * SILENT_S)
        return await ask(question)

    monkeypatch.setattr(rig.host, "ask", take_long)
    answer = await shard.ask(CancelOrdersRequest(an_address("alice"), [order_id]))
    assert isinstance(answer, CancelOrdersReply)
    assert list(answer.canceled) == [order_id]


@pytest.mark.usefixtures("pinging")
async def test_a_state_that_waits_for_its_disk_is_waited_for(
    rig: TradingRig, server: EngineServer, disk: SmallDisk, path: Path
) -> None:
    assert server.host is not None
    resting = await become_full(rig, disk)
    heard = Recorder()
    async with line_to(path, heard) as shard:
        await until(lambda: shard._line is not None)
        line = shard._line
        await asyncio.sleep(2 * SILENT_S)
        assert not shard.begun.is_set()
        disk.heal()
        await begun(shard)
        assert shard._line is line
    assert [each.order_id for each in heard.of(OrderRestored)] == [await resting]  # type: ignore[union-attr]


@pytest.mark.usefixtures("stalling")
async def test_who_waited_in_vain_for_a_state_comes_again(
    rig: TradingRig, server: EngineServer, disk: SmallDisk, path: Path
) -> None:
    assert server.host is not None
    resting = await become_full(rig, disk)
    heard = Recorder()
    async with line_to(path, heard) as shard:
        await until(lambda: shard._line is not None)
        line = shard._line
        await until(lambda: shard._line not in (None, line))
        disk.heal()
        await begun(shard)
        await until(lambda: len(heard.of(OrderRestored)) == 1)
    with pytest.raises(EngineStalled):
        await resting


@pytest.mark.usefixtures("pinging", "stalling")
async def test_while_the_disk_is_full_each_is_told_so_on_the_line_that_is_there(
    rig: TradingRig, shard: RemoteShard, disk: SmallDisk
) -> None:
    line = shard._line
    order_id = await rig.rest(a_buy("alice"))
    disk.takes_writes = False
    with pytest.raises(EngineStalled):
        await shard.ask(CancelOrdersRequest(an_address("alice"), [order_id]))
    with pytest.raises(EngineReadOnly):
        await shard.ask(PlaceRequest(a_placing(a_buy("alice", price_ticks=11))))
    assert shard._line is line


async def become_full(rig: TradingRig, disk: SmallDisk) -> "asyncio.Task[Bytes32]":
    """Have an order rest on a disk that takes nothing; return who waits for it."""
    disk.takes_writes = False
    resting = asyncio.create_task(rig.rest(a_buy("alice")))
    await until(lambda: disk.refusals > 0)
    return resting


async def test_tables_are_waited_for_where_the_engine_is(
    rig: TradingRig, shard: RemoteShard, alice: Trader
) -> None:
    await alice.placed(a_buy("alice"))
    await shard.wait_for_tables()
    assert rig.host.projection.sequence == rig.host.engine.published_sequence


async def test_a_fault_of_ours_is_told_without_its_words(
    rig: TradingRig, shard: RemoteShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: EngineRequest) -> EngineReply:
        raise RuntimeError("a secret")

    monkeypatch.setattr(rig.host, "ask", fail)
    with pytest.raises(Exception, match="the matching engine failed"):
        await shard.ask(FindPlacementRequest(an_order_id(a_buy("alice"))))

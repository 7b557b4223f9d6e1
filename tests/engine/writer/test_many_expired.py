"""Many orders that expire in one second: closed in parts, and never met by an order that arrives."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from tests.engine.rig import handle, until
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import (
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import EngineRestarting
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    DelayMarket,
    ExpireOrders,
    PlaceOrder,
    decode_command,
)
from foretell.domain.exchange.effects import CloseReason, OrderClosed
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, OrderStatus, OrderType
from foretell.domain.exchange.state import State
from foretell.engine.protocol.requests import (
    CancelMatchingRequest,
    CancelOrdersReply,
    CommittedCommand,
    PlaceReply,
    PlaceRequest,
)
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio

PER_COMMAND = 3
DUE = 20
OTHER = an_open_market("other")


class Rig:
    """An engine in which many offers of bob expire in the same second."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
        self.engine = Engine(self.journal, self.clock.now_ms, expired_per_command_max=PER_COMMAND)
        self.committed: list[CommittedCommand] = []
        self.engine.subscribe(self.committed.append)

    async def start(self) -> None:
        await self.engine.start()
        for command in (
            an_open_market(),
            OTHER,
            some_funds("alice", "bob", "carol"),
            some_funds("alice", market="other"),
        ):
            await self.engine.submit(command)
        for number in range(DUE):
            await self.rest(number)
        await handle(self.engine, PlaceRequest(self.lasting))
        self.clock.move(5_000)

    async def rest(self, number: int) -> None:
        expiration_s = NOW_S + 5 + EXPIRATION_MARGIN_S
        order = a_sell("bob", 40, 5 * TOKEN, expiration_s=expiration_s, salt=str(number))
        await handle(self.engine, PlaceRequest(a_placing(order, OrderType.GTD)))

    @property
    def lasting(self) -> PlaceOrder:
        """Carol's offer behind them, which does not expire."""
        return a_placing(a_sell("carol", 40, 5 * TOKEN, salt="900"))

    @property
    def closed_per_command(self) -> list[int]:
        """How many orders each command closed because they had expired."""
        counts = [
            sum(
                isinstance(effect, OrderClosed) and effect.reason is CloseReason.EXPIRED
                for effect in each.effects
            )
            for each in self.committed
        ]
        return [count for count in counts if count]

    def replayed(self) -> State:
        state = State()
        for entry in self.journal.entries():
            apply(state, decode_command(entry.payload))
        return state


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    await rig.start()
    yield rig
    await rig.engine.close()


async def place(rig: Rig, command: PlaceOrder) -> PlaceReply:
    reply = await handle(rig.engine, PlaceRequest(command))
    assert isinstance(reply, PlaceReply)
    return reply


async def test_attack_h1_orders_that_expire_together_are_closed_in_parts(rig: Rig) -> None:
    turns = 0
    expiring = asyncio.create_task(rig.engine.expire())
    while not expiring.done():
        await asyncio.sleep(0)
        turns += 1
    assert rig.closed_per_command == [3, 3, 3, 3, 3, 3, 2]
    assert turns > len(rig.closed_per_command), "others have a turn between two parts"
    assert list(rig.engine.state.live_orders) == [rig.lasting.order_id]
    assert digest(rig.replayed()) == digest(rig.engine.state)


@pytest.mark.parametrize("order_type", [OrderType.FOK, OrderType.FAK, OrderType.GTC])
async def test_attack_h1_an_order_waits_until_those_in_its_way_are_closed_and_meets_none(
    rig: Rig, order_type: OrderType
) -> None:
    taking = asyncio.create_task(place(rig, a_placing(a_buy("alice", 40, 5 * TOKEN), order_type)))
    await asyncio.sleep(0)
    elsewhere = a_placing(a_buy("alice", 40, market="other"), market=OTHER)
    cheaper = a_placing(a_buy("carol", 30))
    assert (await place(rig, elsewhere)).placement.status is OrderStatus.LIVE
    reply = await taking
    assert reply.placement.status is OrderStatus.MATCHED
    (trade,) = rig.engine.state.unsettled_trades.values()
    assert [fill.maker_order_id for fill in trade.trade.fills] == [rig.lasting.order_id]
    assert max(rig.closed_per_command) <= PER_COMMAND
    assert sum(rig.closed_per_command) == DUE
    assert (await place(rig, cheaper)).placement.status is OrderStatus.LIVE
    assert digest(rig.replayed()) == digest(rig.engine.state)


async def test_attack_h1_orders_of_other_markets_do_not_wait(rig: Rig) -> None:
    settled: list[object] = []
    taking = a_placing(a_buy("alice", 40, 5 * TOKEN), at_ms=rig.clock.now_ms())
    elsewhere = a_placing(a_buy("alice", 40, market="other"), market=OTHER)
    rig.engine.begin(taking, lambda _: settled.append("taking"))
    rig.engine.begin(elsewhere, lambda _: settled.append("elsewhere"))
    assert elsewhere.order_id in rig.engine.state.live_orders
    assert taking.order_id not in rig.engine.state.placed
    await until(lambda: len(settled) == 2)
    assert settled == ["elsewhere", "taking"]


def note(settled: list[str], name: str, _: object) -> None:
    settled.append(name)


async def test_orders_of_a_market_keep_their_turn_while_one_waits(rig: Rig) -> None:
    settled: list[str] = []
    for name, price in (("first", 40), ("second", 30)):
        order = a_buy("alice", price, 5 * TOKEN, salt=str(price))
        command = a_placing(order, at_ms=rig.clock.now_ms())
        rig.engine.begin(command, partial(note, settled, name))
    await until(lambda: len(settled) == 2)
    assert settled == ["first", "second"]


async def test_an_order_that_waits_is_refused_when_the_engine_closes(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    settled: list[object] = []
    taking = a_placing(a_buy("alice", 40, 5 * TOKEN), at_ms=rig.clock.now_ms())
    rig.engine.begin(taking, settled.append)
    await rig.engine.close()
    assert [type(each) for each in settled] == [EngineRestarting]


async def test_a_command_of_an_older_journal_closes_all_orders_that_are_due(rig: Rig) -> None:
    older = decode_command(b"\x92\xa6expire\xcf" + rig.engine.clock_ms().to_bytes(8, "big"))
    assert older == ExpireOrders(rig.engine.clock_ms())
    outcome = apply(rig.replayed(), older)
    assert sum(isinstance(each, OrderClosed) for each in outcome.effects) == DUE


@pytest.mark.parametrize(
    ("fields", "walked"),
    [
        ({"token_id": "1"}, 0),
        ({"condition_id": "0x" + "00" * 32}, 0),
        ({"condition_id": OTHER.condition_id}, 0),
        ({"token_id": OTHER.token_yes, "condition_id": an_open_market().condition_id}, 0),
        ({"owner": "another key"}, 0),
        ({"token_id": an_open_market().token_yes}, 15),
    ],
)
async def test_attack_h1_a_cancel_looks_at_orders_of_its_market_and_key_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], walked: int
) -> None:
    seen: list[object] = []
    monkeypatch.setattr("foretell.domain.exchange.ledger.INDEXED_ABOVE", 10)
    for number in range(15):
        order = a_buy("alice", 30, 5 * TOKEN, salt=f"{1000 + number}")
        await place(rig, a_placing(order))
    wallet = rig.engine.state.ledger.accounts_by_wallet[an_address("alice")]
    orders_of = type(wallet).orders_of

    def counted(*args: object) -> object:
        for order in orders_of(*args):  # type: ignore[arg-type]
            seen.append(order)
            yield order

    monkeypatch.setattr(type(wallet), "orders_of", counted)
    assert wallet.order_index is not None
    monkeypatch.setattr(type(wallet), "_orders", None)
    request = CancelMatchingRequest(an_address("alice"), [an_address("alice")], **fields)  # type: ignore[arg-type]
    reply = await handle(rig.engine, request)
    assert isinstance(reply, CancelOrdersReply)
    assert (len(seen), len(reply.canceled)) == (walked, walked)


async def test_attack_h1_a_delayed_order_waits_until_those_in_its_way_are_closed_and_meets_none(
    rig: Rig,
) -> None:
    rig.clock.move(-5_000)
    market = an_open_market().condition_id
    await rig.engine.submit(DelayMarket(rig.clock.now_ms(), market, 3_000))
    delayed = await place(rig, a_placing(a_buy("alice", 40, 5 * TOKEN)))
    assert delayed.placement.status is OrderStatus.DELAYED
    rig.clock.move(10_000)
    elsewhere = a_placing(a_buy("alice", 40, market="other"), market=OTHER)
    assert (await place(rig, elsewhere)).placement.status is OrderStatus.LIVE
    await rig.engine.expire()
    await until(lambda: bool(rig.engine.state.unsettled_trades))
    (trade,) = rig.engine.state.unsettled_trades.values()
    assert [fill.maker_order_id for fill in trade.trade.fills] == [rig.lasting.order_id]
    assert sum(rig.closed_per_command) == DUE
    assert digest(rig.replayed()) == digest(rig.engine.state)

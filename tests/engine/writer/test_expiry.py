"""Orders that expire: an order that arrives at that moment or later never matches them."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.rig import handle
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import NOW_S, TOKEN, a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.errors.exchange import FillAndKillUnmatched
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    OrderClosed,
    OrderFilled,
    TradeMatched,
)
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, OrderType
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.protocol.requests import PlaceReply, PlaceRequest
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio


class ExpiryRig:
    """An engine that can be restarted, and the effects that it published."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        self.effects: list[Effect] = []
        self.placed = 0

    async def start(self) -> None:
        journal = FileJournal(self.folder, segment_bytes=SEGMENT_BYTES)
        self.engine = Engine(journal, self.clock.now_ms)
        self.effects.clear()
        self.engine.subscribe(lambda committed: self.effects.extend(committed.effects))
        await self.engine.start()

    async def restart(self) -> None:
        before = digest(self.engine.state)
        await self.engine.close()
        await self.start()
        assert digest(self.engine.state) == before

    async def rest(self, leaves_at_s: int) -> Bytes32:
        """Have bob offer tokens until a time."""
        self.placed += 1
        expiration_s = leaves_at_s + EXPIRATION_MARGIN_S
        order = a_sell("bob", 40, 5 * TOKEN, expiration_s=expiration_s, salt=str(self.placed))
        command = a_placing(order, OrderType.GTD)
        await handle(self.engine, PlaceRequest(command))
        return command.order_id

    async def take(self) -> list[Bytes32]:
        """Have alice take an offer, and return the orders that she matched."""
        self.placed += 1
        order = a_buy("alice", 40, 5 * TOKEN, salt=str(self.placed))
        try:
            placed = await handle(self.engine, PlaceRequest(a_placing(order, OrderType.FAK)))
        except FillAndKillUnmatched:
            return []
        assert isinstance(placed, PlaceReply)
        (trade_id,) = placed.placement.trade_ids
        trades = [each.trade for each in self.effects if isinstance(each, TradeMatched)]
        (trade,) = [trade for trade in trades if trade.trade_id == trade_id]
        return [fill.maker_order_id for fill in trade.fills]


@contextlib.asynccontextmanager
async def an_engine(folder: Path) -> AsyncIterator[ExpiryRig]:
    rig = ExpiryRig(folder, Clock())
    await rig.start()
    await rig.engine.submit(an_open_market())
    await rig.engine.submit(some_funds("alice", "bob"))
    yield rig
    await rig.engine.close()


@pytest.mark.case("B-08")
@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize(
    ("late_ms", "is_matched"),
    [(-1_000, True), (-1, True), (0, False), (1, False), (3_600_000, False)],
)
async def test_an_expired_order_is_not_matched(
    tmp_path: Path, late_ms: int, *, is_matched: bool, restarts: bool
) -> None:
    async with an_engine(tmp_path) as rig:
        order_id = await rig.rest(NOW_S + 5)
        rig.clock.move(5_000 + late_ms)
        if restarts:
            await rig.restart()
        assert await rig.take() == [order_id] * is_matched
        closed = [each for each in rig.effects if isinstance(each, OrderClosed)]
        assert [each.reason for each in closed] == [CloseReason.EXPIRED] * (not is_matched)


class Step(NamedTuple):
    """Time passes, or a clock is set back, and then an act follows."""

    wait_ms: int
    act: str
    lives_s: int


STEPS = st.builds(
    Step,
    wait_ms=st.sampled_from([-5_000, -1, 0, 0, 1, 499, 500, 999, 1_000, 1_000, 2_500, 10_000]),
    act=st.sampled_from(["rest", "rest", "rest", "take", "take", "sweep", "restart"]),
    lives_s=st.integers(1, 12),
)


@pytest.mark.case("B-08", "J-01")
@settings(max_examples=40)
@given(steps=st.lists(STEPS, min_size=5, max_size=30))
def test_an_order_is_matched_in_its_turn_until_it_expires_and_never_after(
    steps: list[Step],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), steps))


async def play(folder: Path, steps: list[Step]) -> None:
    """Act step by step, and compare with a list of the waiting orders and their ends."""
    waiting: list[tuple[Bytes32, int]] = []
    async with an_engine(folder) as rig:
        for step in steps:
            rig.clock.move(step.wait_ms)
            now_ms = rig.engine.clock_ms()
            if step.act == "rest":
                leaves_at_s = now_ms // 1000 + step.lives_s
                waiting.append((await rig.rest(leaves_at_s), leaves_at_s))
            elif step.act == "take":
                waiting = [each for each in waiting if each[1] * 1000 > now_ms]
                matched, waiting = waiting[:1], waiting[1:]
                assert await rig.take() == [order_id for order_id, _ in matched]
                assert list(rig.engine.state.live_orders) == [each for each, _ in waiting]
            elif step.act == "sweep":
                await sweep(rig.engine)
                waiting = [each for each in waiting if each[1] * 1000 > now_ms]
                assert list(rig.engine.state.live_orders) == [each for each, _ in waiting]
            else:
                await rig.restart()
        ended = [each.order_id for each in rig.effects if isinstance(each, OrderClosed)]
        filled = {each.order_id for each in rig.effects if isinstance(each, OrderFilled)}
        assert len(ended) == len(set(ended))
        assert filled.isdisjoint(ended)


async def sweep(engine: Engine) -> None:
    """Have the engine close orders that are due, as its loop does."""
    await engine.expire()

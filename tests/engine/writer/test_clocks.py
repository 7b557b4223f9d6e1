"""Clocks that jump, stand still or differ: the order of commands and every balance stay."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.engine.rig import handle
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import TOKEN, a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.errors.exchange import InvalidExpiration
from foretell.domain.exchange.commands import decode_command
from foretell.domain.exchange.order import OrderType
from foretell.engine.protocol.requests import PlaceRequest
from foretell.engine.writer.clock_watch import AHEAD, ClockWatch
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000


class Act(NamedTuple):
    """The clock jumps, and then an order is placed."""

    jump_ms: int
    is_buy: bool
    price_ticks: int
    size: int
    restarts: bool


JUMPS_MS = (0, 0, 1, 1_000, -1, -500, HOUR_MS, -HOUR_MS, 24 * HOUR_MS)
ACTS = 20


def some_acts(seed: int) -> list[Act]:
    rng = random.Random(seed)
    return [
        Act(
            jump_ms=rng.choice(JUMPS_MS),
            is_buy=rng.random() < 0.5,
            price_ticks=rng.randint(38, 42),
            size=rng.randint(5, 9),
            restarts=rng.random() < 0.1,
        )
        for _ in range(ACTS)
    ]


def an_engine(folder: Path, clock: Clock) -> Engine:
    return Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), clock.now_ms)


async def play(folder: Path, acts: Sequence[Act], *, jumps: bool) -> list[Any]:
    """Place orders under a clock that jumps or passes evenly, and return what is left of each."""
    clock = Clock()
    engine = an_engine(folder, clock)
    await engine.start()
    await engine.submit(an_open_market())
    await engine.submit(some_funds("alice", "bob"))
    answers = []
    for number, act in enumerate(acts):
        clock.move(act.jump_ms if jumps else 1_000)
        if act.restarts:
            before = digest(engine.state)
            await engine.close()
            clock.move(-HOUR_MS if jumps else 0)
            engine = an_engine(folder, clock)
            await engine.start()
            assert digest(engine.state) == before
        make, name = (a_buy, "alice") if act.is_buy else (a_sell, "bob")
        order = make(name, act.price_ticks, act.size * TOKEN, salt=str(number))
        placed: Any = await handle(engine, PlaceRequest(a_placing(order)))
        answers.append((placed.placement.order_id, placed.placement.status))
    live = {order_id: order.remaining_units for order_id, order in engine.state.live_orders.items()}
    ledger = engine.state.ledger
    accounts = {
        (wallet, asset): ledger.look_up(wallet, asset)
        for wallet in {wallet for wallet, _ in ledger.accounts_held()}
        for asset in ledger.assets(wallet)
    }
    held = {
        place: (each.confirmed_units, each.credit_units, each.debit_units)
        for place, each in accounts.items()
    }
    await engine.close()
    return [answers, live, held]


def check_times(folder: Path) -> None:
    """Check that no command of a journal is earlier than the one before."""
    times = [decode_command(entry.payload).at_ms for entry in read_entries(folder)]
    assert times == sorted(times)


@pytest.mark.case("J-01")
@pytest.mark.parametrize("seed", range(5))
async def test_a_clock_that_jumps_or_stands_still_changes_no_trade_and_no_balance(
    tmp_path: Path, seed: int
) -> None:
    """A start with a clock an hour behind is that of another host that takes the journal over."""
    acts = some_acts(seed)
    under_jumps = await play(tmp_path / "jumping", acts, jumps=True)
    assert under_jumps == await play(tmp_path / "even", acts, jumps=False)
    check_times(tmp_path / "jumping")


async def a_corrected_engine(folder: Path, clock: Clock) -> Engine:
    """Return an engine that took a command while its clock was an hour ahead, and started again after that."""
    engine = an_engine(folder, clock)
    await engine.start()
    await engine.submit(an_open_market())
    clock.move(HOUR_MS)
    await engine.submit(msgspec.structs.replace(some_funds("alice"), at_ms=engine.clock_ms()))
    clock.move(-HOUR_MS)
    assert engine.ahead_ms == HOUR_MS
    await engine.close()
    engine = an_engine(folder, clock)
    await engine.start()
    return engine


async def test_a_refusal_of_an_engine_that_is_ahead_names_its_time(tmp_path: Path) -> None:
    """It said that it was an hour later than on any clock."""
    clock = Clock()
    engine = await a_corrected_engine(tmp_path, clock)
    expires_s = (clock.now_ms() + HOUR_MS // 2) // 1000
    order = a_placing(a_buy("alice", expiration_s=expires_s), OrderType.GTD)
    ahead_s = (clock.now_ms() + HOUR_MS) // 1000
    message = f"the matching engine's time, which never goes back, is {ahead_s}, and"
    with pytest.raises(InvalidExpiration, match=message):
        await handle(engine, PlaceRequest(order))
    clock.move(HOUR_MS)
    assert engine.ahead_ms == 0
    await engine.close()


async def test_an_engine_that_is_ahead_is_logged_until_the_clock_has_caught_up(
    tmp_path: Path,
) -> None:
    """Nothing named it: orders were refused until the clock had caught up."""
    clock = Clock()
    engine = await a_corrected_engine(tmp_path, clock)
    watch = ClockWatch(lambda: engine.ahead_ms)
    seen = []
    with capture_logs() as logs:
        for _ in range(HOUR_MS // 1000 + 10):
            await watch.run_once()
            seen.append(ahead_s())
            clock.move(1_000)
    await engine.close()
    assert [seen[0], seen[-1]] == [HOUR_MS / 1000, 0.0]
    began, ended = logs
    assert began["seconds"] == HOUR_MS // 1000
    assert "caught up" in ended["event"]
    assert {each["log_level"] for each in logs} == {"warning"}


def ahead_s() -> float:
    (metric,) = AHEAD.collect()
    (sample,) = metric.samples
    return sample.value

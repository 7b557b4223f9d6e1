"""Orders that would expire before settlement reaches them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.rigs.clock import Clock
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, OrderType
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine.settlement_lag import LAG_TOLERATED_S, SettlementLag
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def engine(tmp_path: Path, clock: Clock) -> AsyncIterator[Engine]:
    """An engine with one trade that waits for the chain."""
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), clock.now_ms)
    await engine.start()
    await engine.submit(an_open_market())
    await engine.submit(some_funds("alice", "bob"))
    await engine.submit(a_placing(a_sell("bob", size_units=5 * TOKEN)))
    await engine.submit(a_placing(a_buy("alice", size_units=5 * TOKEN)))
    assert len(engine.state.unsettled_trades) == 1
    yield engine
    await engine.close()


def expiring(clock: Clock, in_s: int) -> PlaceOrder:
    order = a_buy("alice", salt="7", expiration_s=clock.at_ms // 1000 + in_s)
    return a_placing(order, OrderType.GTD)


async def test_h4_an_order_that_may_expire_before_it_settles_is_refused_while_settlement_lags(
    engine: Engine, clock: Clock
) -> None:
    clock.move((LAG_TOLERATED_S + 10) * 1000)
    lag = SettlementLag(engine)
    grown_s = EXPIRATION_MARGIN_S + LAG_TOLERATED_S + 10
    assert lag.is_too_long_for(expiring(clock, grown_s))
    assert not lag.is_too_long_for(expiring(clock, grown_s + 1))
    assert not lag.is_too_long_for(a_placing(a_buy("alice", salt="8")))


async def test_a_lag_that_the_margin_covers_refuses_nothing(engine: Engine, clock: Clock) -> None:
    clock.move(LAG_TOLERATED_S * 1000)
    assert not SettlementLag(engine).is_too_long_for(expiring(clock, EXPIRATION_MARGIN_S + 1))


async def test_an_order_that_was_placed_before_is_answered_again(
    engine: Engine, clock: Clock
) -> None:
    placed = expiring(clock, 80)
    await engine.submit(placed)
    clock.move(40_000)
    assert not SettlementLag(engine).is_too_long_for(placed)


@pytest.mark.parametrize("status", [TradeStatus.MINED, TradeStatus.RETRYING])
async def test_a_trade_on_the_chain_or_one_that_failed_is_no_lag(
    engine: Engine, clock: Clock, status: TradeStatus
) -> None:
    (trade_id,) = engine.state.unsettled_trades
    await engine.submit(a_settlement(trade_id, status))
    clock.move(60_000)
    assert not SettlementLag(engine).is_too_long_for(expiring(clock, 70))


async def test_the_trades_are_looked_at_once_a_second(engine: Engine, clock: Clock) -> None:
    lag = SettlementLag(engine)
    clock.move((LAG_TOLERATED_S + 1) * 1000)
    assert lag.is_too_long_for(expiring(clock, 70))
    (trade_id,) = engine.state.unsettled_trades
    await engine.submit(a_settlement(trade_id, TradeStatus.MINED))
    assert lag.is_too_long_for(expiring(clock, 70))
    clock.move(1_000)
    assert not lag.is_too_long_for(expiring(clock, 70))

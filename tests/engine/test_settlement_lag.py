"""Orders that would expire before settlement reaches them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.rigs.clock import Clock
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import (
    NEG_RISK_EXCHANGE,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_word,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import EngineBusy
from foretell.domain.errors.open_orders import TooManyUnsettledTrades
from foretell.domain.exchange.commands import CancelOrders, HaltMarket, OpenMarket, PlaceOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, OrderType, SignedOrder
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine import settlement_lag
from foretell.engine.settlement_lag import (
    FEW_TRADES,
    LAG_REFUSED_S,
    LAG_TOLERATED_S,
    LOOK_PAUSE_MS,
    SettlementLag,
)
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
    with pytest.raises(EngineBusy, match="settlement is behind"):
        raise lag.refusal_of(expiring(clock, grown_s)) or AssertionError
    assert not lag.refusal_of(expiring(clock, grown_s + 1))
    assert not lag.refusal_of(a_placing(a_buy("alice", salt="8")))


async def test_a_lag_that_the_margin_covers_refuses_nothing(engine: Engine, clock: Clock) -> None:
    clock.move(LAG_TOLERATED_S * 1000)
    assert not SettlementLag(engine).refusal_of(expiring(clock, EXPIRATION_MARGIN_S + 1))


async def test_an_order_that_was_placed_before_is_answered_again(
    engine: Engine, clock: Clock
) -> None:
    placed = expiring(clock, 80)
    await engine.submit(placed)
    clock.move(40_000)
    assert not SettlementLag(engine).refusal_of(placed)


@pytest.mark.parametrize("status", [TradeStatus.MINED, TradeStatus.RETRYING])
async def test_a_trade_on_the_chain_or_one_that_failed_is_no_lag(
    engine: Engine, clock: Clock, status: TradeStatus
) -> None:
    (trade_id,) = engine.state.unsettled_trades
    await engine.submit(a_settlement(trade_id, status))
    clock.move(60_000)
    assert not SettlementLag(engine).refusal_of(expiring(clock, 70))


async def test_the_trades_are_looked_at_once_a_second(engine: Engine, clock: Clock) -> None:
    lag = SettlementLag(engine)
    clock.move((LAG_TOLERATED_S + 1) * 1000)
    assert lag.refusal_of(expiring(clock, 70))
    (trade_id,) = engine.state.unsettled_trades
    await engine.submit(a_settlement(trade_id, TradeStatus.MINED))
    assert lag.refusal_of(expiring(clock, 70))
    clock.move(1_000)
    assert not lag.refusal_of(expiring(clock, 70))


MIDDLE_S = (LAG_TOLERATED_S + LAG_REFUSED_S) // 2


async def rest(engine: Engine, clock: Clock, leaves_in_s: int | None) -> None:
    """Have a bid of 50 rest that leaves its book after a time, if it does."""
    expiration_s = 0
    if leaves_in_s is not None:
        expiration_s = clock.at_ms // 1000 + EXPIRATION_MARGIN_S + leaves_in_s
    order = a_buy("alice", salt="9", size_units=5 * TOKEN, expiration_s=expiration_s)
    order_type = OrderType.GTD if expiration_s else OrderType.GTC
    await engine.submit(a_placing(order, order_type, at_ms=clock.at_ms))


def selling(price_ticks: int = 50, order_type: OrderType = OrderType.GTC) -> PlaceOrder:
    order = a_sell("bob", price_ticks, salt="8", size_units=5 * TOKEN)
    return a_placing(order, order_type)


@pytest.mark.parametrize("order_type", [OrderType.GTC, OrderType.FOK, OrderType.FAK])
async def test_h4_no_order_is_taken_that_would_match_past_a_lag(
    engine: Engine, clock: Clock, order_type: OrderType
) -> None:
    await rest(engine, clock, leaves_in_s=None)
    clock.move(LAG_REFUSED_S * 1000)
    lag = SettlementLag(engine)
    assert not lag.refusal_of(selling(order_type=order_type))
    clock.move(1_000)
    assert lag.refusal_of(selling(order_type=order_type))


async def test_h4_an_order_that_rests_is_taken_at_any_lag(engine: Engine, clock: Clock) -> None:
    await rest(engine, clock, leaves_in_s=None)
    clock.move(100 * LAG_REFUSED_S * 1000)
    lag = SettlementLag(engine)
    assert not lag.refusal_of(selling(51))
    assert not lag.refusal_of(a_placing(a_buy("alice", 49, salt="8")))
    assert not lag.refusal_of(a_placing(a_buy("alice", 49, salt="8", is_yes=False)))
    post_only = a_sell("bob", 50, salt="8", size_units=5 * TOKEN)
    assert not lag.refusal_of(a_placing(post_only, is_post_only=True))


async def test_h4_an_order_of_the_other_outcome_that_would_mint_is_refused_past_a_lag(
    engine: Engine, clock: Clock
) -> None:
    await rest(engine, clock, leaves_in_s=None)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    minting = a_buy("bob", 50, salt="8", size_units=5 * TOKEN, is_yes=False)
    assert SettlementLag(engine).refusal_of(a_placing(minting))


@pytest.mark.parametrize(("later_s", "is_refused"), [(0, True), (1, False), (None, False)])
async def test_h4_an_order_that_meets_one_that_may_expire_unsettled_is_refused(
    engine: Engine, clock: Clock, later_s: int | None, *, is_refused: bool
) -> None:
    leaves_in_s = None if later_s is None else 2 * MIDDLE_S + later_s
    await rest(engine, clock, leaves_in_s)
    clock.move(MIDDLE_S * 1000)
    lag = SettlementLag(engine)
    assert (lag.refusal_of(selling()) is not None) is is_refused
    assert not lag.refusal_of(selling(51))


async def test_a_trade_of_a_halted_market_is_no_lag(engine: Engine, clock: Clock) -> None:
    clock.move(LAG_REFUSED_S * 2000)
    await engine.submit(HaltMarket(clock.at_ms, a_word("market"), is_halted=True))
    assert not SettlementLag(engine).refusal_of(expiring(clock, 70))


async def test_a_lag_of_one_exchange_refuses_no_order_of_the_other(
    engine: Engine, clock: Clock
) -> None:
    event = an_open_market("event", exchange=NEG_RISK_EXCHANGE)
    await engine.submit(event)
    clock.move(LAG_REFUSED_S * 2000)
    expiration_s = clock.at_ms // 1000 + 70
    order = a_buy("alice", salt="7", market="event", expiration_s=expiration_s)
    lag = SettlementLag(engine)
    assert not lag.refusal_of(a_placing(order, OrderType.GTD, event))
    assert lag.refusal_of(expiring(clock, 70))


async def match_beside(engine: Engine, clock: Clock, seller: str, salt: str) -> str:
    """Have alice buy from a seller, and return the id of the trade."""
    known = set(engine.state.unsettled_trades)
    for order in (a_sell(seller, salt=salt), a_buy("alice", salt=salt)):
        await engine.submit(a_placing(order, at_ms=clock.at_ms))
    (trade_id,) = set(engine.state.unsettled_trades) - known
    return trade_id


async def test_h4_trades_that_wait_beside_a_failing_one_are_no_lag(
    engine: Engine, clock: Clock
) -> None:
    """Two wallets with many doomed trades keep the orders of nobody else out."""
    failing = await match_beside(engine, clock, "bob", "20")
    await engine.submit(a_settlement(failing, TradeStatus.RETRYING))
    await rest(engine, clock, leaves_in_s=None)
    clock.move(2 * LAG_REFUSED_S * 1000)
    assert TradeStatus.MATCHED in {each.status for each in engine.state.unsettled_trades.values()}
    assert not SettlementLag(engine).refusal_of(selling())


async def test_h4_a_trade_of_other_wallets_than_a_failing_one_is_a_lag(
    engine: Engine, clock: Clock
) -> None:
    await engine.submit(some_funds("carol", "dave"))
    sell, buy = a_sell("carol", salt="20"), a_buy("dave", salt="20")
    for order in (sell, buy):
        await engine.submit(a_placing(order, at_ms=clock.at_ms))
    first, _ = engine.state.unsettled_trades
    await engine.submit(a_settlement(first, TradeStatus.RETRYING))
    await rest(engine, clock, leaves_in_s=None)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert SettlementLag(engine).refusal_of(selling())


@pytest.mark.parametrize(("lag_s_max", "is_refused"), [(300, False), (200, True), (0, False)])
async def test_h4_the_lag_past_which_nothing_is_matched_is_a_setting(
    engine: Engine, clock: Clock, lag_s_max: int, *, is_refused: bool
) -> None:
    await rest(engine, clock, leaves_in_s=None)
    clock.move(250_000)
    assert (SettlementLag(engine, lag_s_max).refusal_of(selling()) is not None) is is_refused


async def trade_often(engine: Engine, clock: Clock, taker: str, trades: int) -> list[str]:
    """Have a wallet take so many orders of bob, one after the other; return the ids of the trades."""
    known = set(engine.state.unsettled_trades)
    for salt in map(str, range(100, 100 + trades)):
        for order in (a_sell("bob", salt=salt), a_buy(taker, salt=salt)):
            await engine.submit(a_placing(order, at_ms=clock.at_ms))
    return [each for each in engine.state.unsettled_trades if each not in known]


async def mine(engine: Engine, *trade_ids: str) -> None:
    for trade_id in trade_ids:
        await engine.submit(a_settlement(trade_id, TradeStatus.MINED))


def selling_of(wallet: str) -> PlaceOrder:
    return a_placing(a_sell(wallet, 50, salt="8", size_units=5 * TOKEN))


@pytest.fixture
async def backlog(engine: Engine, clock: Clock) -> list[str]:
    """Trades of carol, who took more than a few; the trade that waited before is in a block."""
    await engine.submit(some_funds("carol", "dora"))
    await mine(engine, *engine.state.unsettled_trades)
    trades = await trade_often(engine, clock, "carol", FEW_TRADES + 5)
    await rest(engine, clock, leaves_in_s=None)
    return trades


async def test_h4_the_backlog_of_one_taker_keeps_orders_of_nobody_else_out(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    """Two wallets that trade with each other match more than the chain settles."""
    lag = SettlementLag(engine)
    assert lag.refusal_of(selling_of("dora")) is None
    clock.move((LAG_REFUSED_S + 1) * 1000)
    await mine(engine, backlog[0])
    assert lag.refusal_of(selling_of("dora")) is None
    assert isinstance(lag.refusal_of(selling_of("carol")), EngineBusy)
    assert lag.refusal_of(a_placing(a_sell("carol", 51, salt="8"))) is None
    expiring_carol = a_buy("carol", 49, salt="7", expiration_s=clock.at_ms // 1000 + 90)
    assert isinstance(lag.refusal_of(a_placing(expiring_carol, OrderType.GTD)), EngineBusy)


async def test_h4_the_backlog_of_one_taker_is_a_lag_while_no_trade_gets_into_a_block(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    lag = SettlementLag(engine)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert isinstance(lag.refusal_of(selling_of("dora")), EngineBusy)
    await mine(engine, backlog[0])
    clock.move(2 * LOOK_PAUSE_MS)
    assert lag.refusal_of(selling_of("dora")) is None
    clock.move(LAG_REFUSED_S * 1000)
    assert lag.refusal_of(selling_of("dora")) is None
    clock.move(2 * LOOK_PAUSE_MS)
    assert isinstance(lag.refusal_of(selling_of("dora")), EngineBusy)


@pytest.mark.usefixtures("backlog")
async def test_a_trade_that_failed_a_try_is_no_sign_that_the_chain_takes_any(
    engine: Engine, clock: Clock
) -> None:
    lag = SettlementLag(engine)
    await engine.submit(some_funds("erin", "frank"))
    for order in (a_sell("erin", salt="30"), a_buy("frank", salt="30")):
        await engine.submit(a_placing(order, at_ms=clock.at_ms))
    failing = list(engine.state.unsettled_trades)[-1]
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert isinstance(lag.refusal_of(selling_of("dora")), EngineBusy)
    await engine.submit(a_settlement(failing, TradeStatus.RETRYING))
    clock.move(2 * LOOK_PAUSE_MS)
    assert isinstance(lag.refusal_of(selling_of("dora")), EngineBusy)


async def test_h4_a_few_trades_of_a_taker_beside_the_backlog_of_another_are_a_lag(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    lag = SettlementLag(engine)
    await engine.submit(some_funds("erin"))
    for order in (a_sell("dora", salt="31"), a_buy("erin", salt="31")):
        await engine.submit(a_placing(order, at_ms=clock.at_ms))
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert lag.refusal_of(selling_of("frank")) is not None
    await mine(engine, backlog[0])
    clock.move(2 * LOOK_PAUSE_MS)
    assert lag.refusal_of(selling_of("frank")) is not None


async def test_h4_a_taker_has_a_bounded_number_of_trades_that_wait(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch, backlog: list[str]
) -> None:
    lag = SettlementLag(engine)
    monkeypatch.setattr(settlement_lag, "WAITING_TRADES_MAX", len(backlog))
    with pytest.raises(TooManyUnsettledTrades, match="wait for the chain"):
        raise lag.refusal_of(selling_of("carol")) or AssertionError
    assert lag.refusal_of(selling_of("dora")) is None
    assert lag.refusal_of(a_placing(a_sell("carol", 51, salt="8"))) is None
    await mine(engine, backlog[0])
    clock.move(2 * LOOK_PAUSE_MS)
    assert lag.refusal_of(selling_of("carol")) is None


async def test_h4_a_trade_that_waits_for_one_of_a_backlog_is_no_lag(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    """The maker of a backlog sells on what that brings: the buyer's one trade waits for all of it."""
    await engine.submit(some_funds("erin", "frank"))
    for order in (a_sell("erin", 60, salt="32"), a_buy("frank", 60, salt="32")):
        await engine.submit(a_placing(order, at_ms=clock.at_ms))
    lag = SettlementLag(engine)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    await mine(engine, backlog[0])
    behind = list(engine.state.unsettled_trades)[-1]
    assert lag.refusal_of(selling_of("dora")) is not None
    engine.trades_behind = frozenset({behind})
    clock.move(2 * LOOK_PAUSE_MS)
    await mine(engine, backlog[1])
    clock.move(2 * LOOK_PAUSE_MS)
    assert lag.refusal_of(selling_of("dora")) is None


async def sell_at_the_event(engine: Engine, clock: Clock) -> PlaceOrder:
    """Have a trade wait at another exchange, behind one of a backlog; return a sell that would match there."""
    event = an_open_market("event", exchange=NEG_RISK_EXCHANGE)
    await engine.submit(event)
    await engine.submit(some_funds("erin", "frank", "gina", market="event"))

    def placing(order: SignedOrder) -> PlaceOrder:
        return a_placing(order, OrderType.GTC, event, at_ms=clock.at_ms)

    await engine.submit(placing(a_sell("erin", salt="40", market="event")))
    await engine.submit(placing(a_buy("frank", salt="40", market="event")))
    await engine.submit(placing(a_buy("frank", salt="41", market="event")))
    engine.trades_behind = frozenset({list(engine.state.unsettled_trades)[-1]})
    return placing(a_sell("gina", salt="42", market="event"))


async def test_h4_a_trade_behind_the_backlog_of_one_exchange_stops_no_other(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    """The maker of a backlog sells on at a quiet exchange what that brings: nothing else leaves the trades there."""
    selling_there = await sell_at_the_event(engine, clock)
    lag = SettlementLag(engine)
    for trade_id in backlog:
        assert lag.refusal_of(selling_there) is None
        clock.move((LAG_REFUSED_S // 2) * 1000)
        await mine(engine, trade_id)
    assert lag.refusal_of(selling_there) is None
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert isinstance(lag.refusal_of(selling_there), EngineBusy), "nothing leaves any exchange"


async def test_h4_a_backlog_is_a_lag_while_none_of_its_exchange_leaves_those_that_wait(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    """Its exchange may stand still while another goes on."""
    await sell_at_the_event(engine, clock)
    lag = SettlementLag(engine)
    assert lag.refusal_of(selling_of("dora")) is None
    clock.move((LAG_REFUSED_S + 1) * 1000)
    there = [each for each in engine.state.unsettled_trades if each not in backlog][-1]
    await mine(engine, there)
    assert isinstance(lag.refusal_of(selling_of("dora")), EngineBusy)


async def test_the_last_trade_of_an_exchange_that_leaves_shows_that_the_chain_takes_some(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    selling_there = await sell_at_the_event(engine, clock)
    lag = SettlementLag(engine)
    await mine(engine, *backlog[:-1])
    assert lag.refusal_of(selling_there) is None
    clock.move((LAG_REFUSED_S + 1) * 1000)
    await mine(engine, backlog[-1])
    assert lag.refusal_of(selling_there) is None


@pytest.mark.parametrize(("later_s", "is_refused"), [(0, True), (1, False)])
async def test_h4_an_order_that_expires_is_refused_where_it_meets_a_wallet_that_waits_for_its_own_backlog(
    engine: Engine, clock: Clock, backlog: list[str], later_s: int, *, is_refused: bool
) -> None:
    """At a quiet exchange a maker sells what its backlog at another brings."""
    await sell_at_the_event(engine, clock)
    event, waited_s = an_open_market("event", exchange=NEG_RISK_EXCHANGE), LAG_REFUSED_S // 2
    await engine.submit(some_funds("carol", "dora", market="event"))
    for order in (
        a_sell("carol", 60, salt="46", market="event"),
        a_buy("dora", 60, salt="46", market="event"),
        a_sell("carol", 60, salt="47", market="event"),
        a_sell("dora", 61, salt="47", market="event"),
    ):
        await engine.submit(a_placing(order, OrderType.GTC, event, at_ms=clock.at_ms))
    engine.trades_behind |= {list(engine.state.unsettled_trades)[-1]}
    lag = SettlementLag(engine)
    assert lag.refusal_of(selling_of("dora")) is None
    clock.move(waited_s * 1000)
    await mine(engine, *backlog[:1])

    def buying(wallet: str, price_ticks: int, market: OpenMarket) -> PlaceOrder:
        expires_s = clock.at_ms // 1000 + EXPIRATION_MARGIN_S + waited_s + later_s
        order = a_buy(wallet, price_ticks, salt="48", market="event", expiration_s=expires_s)
        return a_placing(order, OrderType.GTD, market)

    assert (lag.refusal_of(buying("gina", 60, event)) is not None) is is_refused
    assert lag.refusal_of(buying("gina", 59, event)) is None
    resting = a_placing(a_sell("carol", 60, salt="47", market="event"), OrderType.GTC, event)
    await engine.submit(CancelOrders(clock.at_ms, an_address("carol"), (resting.order_id,)))
    assert lag.refusal_of(buying("gina", 61, event)) is None, "dora waits for none of her own"


async def test_h4_a_trade_behind_the_backlog_of_a_maker_keeps_its_taker_not_out(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    """A bot that took one order of a wallet with a backlog beside many of others, which have settled."""
    await engine.submit(some_funds("erin", "frank"))
    lag, known = SettlementLag(engine), set(engine.state.unsettled_trades)
    for salt in range(200, 201 + FEW_TRADES):
        maker = "carol" if salt == 200 else "frank"
        for order in (a_sell(maker, 60, salt=str(salt)), a_buy("erin", 60, salt=str(salt))):
            await engine.submit(a_placing(order, at_ms=clock.at_ms))
    behind, *others = [each for each in engine.state.unsettled_trades if each not in known]
    assert len(others) == FEW_TRADES
    assert lag.refusal_of(selling_of("erin")) is None
    await mine(engine, *others)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    await mine(engine, backlog[0])
    assert isinstance(lag.refusal_of(selling_of("erin")), EngineBusy)
    engine.trades_behind = frozenset({behind})
    clock.move(2 * LOOK_PAUSE_MS)
    await mine(engine, backlog[1])
    assert lag.refusal_of(selling_of("erin")) is None


async def test_a_clock_that_was_set_back_holds_no_look_up(engine: Engine, clock: Clock) -> None:
    """The engine's time stands still until the clock has caught up."""
    await rest(engine, clock, leaves_in_s=None)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    lag = SettlementLag(engine)
    refused = selling()
    assert isinstance(lag.refusal_of(refused), EngineBusy)
    await engine.submit(a_placing(a_buy("alice", 49, salt="50"), at_ms=clock.at_ms))
    await mine(engine, *engine.state.unsettled_trades)
    assert isinstance(lag.refusal_of(refused), EngineBusy)
    clock.move(-3_600_000)
    assert engine.ahead_ms == 3_600_000
    assert lag.refusal_of(refused) is None


@pytest.mark.parametrize("is_maker_busy", [True, False])
async def test_h4_an_order_that_expires_is_refused_where_it_meets_a_wallet_with_a_backlog(
    engine: Engine, clock: Clock, backlog: list[str], *, is_maker_busy: bool
) -> None:
    maker = "carol" if is_maker_busy else "dora"
    await engine.submit(a_placing(a_sell(maker, 60, salt="33"), at_ms=clock.at_ms))
    lag = SettlementLag(engine)
    lag.refusal_of(selling_of("dora"))
    clock.move((LAG_TOLERATED_S + 10) * 1000)
    await mine(engine, backlog[0])
    expires_s = clock.at_ms // 1000 + EXPIRATION_MARGIN_S + LAG_TOLERATED_S

    def buying(price_ticks: int) -> PlaceOrder:
        order = a_buy("erin", price_ticks, salt="34", expiration_s=expires_s)
        return a_placing(order, OrderType.GTD)

    await engine.submit(some_funds("erin"))
    assert (lag.refusal_of(buying(60)) is not None) is is_maker_busy
    assert lag.refusal_of(buying(59)) is None


async def test_a_maker_that_fails_gives_a_taker_no_lag_of_its_own(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    lag = SettlementLag(engine)
    assert lag.refusal_of(selling_of("carol")) is None
    await engine.submit(a_settlement(backlog[0], TradeStatus.RETRYING))
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert lag.refusal_of(selling_of("carol")) is None


async def test_a_backlog_at_one_exchange_is_none_at_another(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    event = an_open_market("event", exchange=NEG_RISK_EXCHANGE)
    await engine.submit(event)
    lag = SettlementLag(engine)
    clock.move((LAG_REFUSED_S + 1) * 1000)
    assert lag.refusal_of(selling_of("carol")) is not None
    order = a_sell("carol", 50, salt="8", market="event", size_units=5 * TOKEN)
    assert lag.refusal_of(a_placing(order, OrderType.GTC, event)) is None
    assert len(backlog) > FEW_TRADES


async def test_h4_trades_of_strangers_with_a_maker_that_has_a_backlog_are_a_lag(
    engine: Engine, clock: Clock, backlog: list[str]
) -> None:
    """A market maker that takes often does not hide how long those wait that take its orders."""
    await engine.submit(some_funds("erin"))
    lag = SettlementLag(engine)
    lag.refusal_of(selling_of("dora"))
    for order in (a_sell("carol", 60, salt="35"), a_buy("erin", 60, salt="35")):
        await engine.submit(a_placing(order, at_ms=clock.at_ms))
    clock.move((LAG_REFUSED_S + 1) * 1000)
    await mine(engine, backlog[0])
    assert isinstance(lag.refusal_of(selling_of("dora")), EngineBusy)


@pytest.mark.parametrize("is_late", [False, True])
async def test_h4_an_order_that_meets_very_many_is_refused_in_a_lag_alone(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(settlement_lag, "WALKED_MAX", 1)
    await engine.submit(some_funds("carol", "dora"))
    if not is_late:
        await mine(engine, *engine.state.unsettled_trades)
    for salt in ("41", "42", "43"):
        await engine.submit(a_placing(a_sell("dora", 60, salt=salt), at_ms=clock.at_ms))
    expires_s = clock.at_ms // 1000 + 2 * EXPIRATION_MARGIN_S
    leaving = a_buy("dora", 30, salt="44", expiration_s=expires_s)
    await engine.submit(a_placing(leaving, OrderType.GTD, at_ms=clock.at_ms))
    clock.move((LAG_TOLERATED_S + 50) * 1000)
    buying = a_placing(a_buy("carol", 60, salt="45", size_units=25 * TOKEN))
    assert (SettlementLag(engine).refusal_of(buying) is not None) is is_late

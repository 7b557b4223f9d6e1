"""Trades of a paused exchange or of a halted market: later trades of their wallets do not wait for them (H-4)."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_operators import FURTHER, grant
from tests.settlement.test_waiting import CONFIRMED, PAUSE, UNPAUSE, give_away, minted

from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ExchangeClosed
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import OrderStatus, Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine.settlement_lag import SettlementLag, lags_of
from foretell.store.creation.halted_markets import (
    RegisteredMarket,
    record_halt,
    record_resumption,
)

pytestmark = pytest.mark.anyio

LONG_MS: Final = 60_000
"""More than any delay of a trade that is tried again."""


async def pause(rig: SettlementRig, market: SandboxMarket) -> None:
    admin = rig.sandbox.account(AccountRole.ADMIN)
    await rig.sandbox.call(admin, rig.exchange(market), PAUSE.encode())


async def unpause(rig: SettlementRig, market: SandboxMarket) -> None:
    admin = rig.sandbox.account(AccountRole.ADMIN)
    await rig.sandbox.call(admin, rig.exchange(market), UNPAUSE.encode())


async def halt(rig: SettlementRig, market: SandboxMarket) -> None:
    lost = RegisteredMarket(market.condition_id, "request")
    async with rig.database.writing() as tx:
        await record_halt(tx, lost, "lost", rig.clock.now_ms())


async def resume(rig: SettlementRig, market: SandboxMarket) -> None:
    async with rig.database.writing() as tx:
        await record_resumption(tx, RegisteredMarket(market.condition_id, "request"))


Act = Callable[[SettlementRig, SandboxMarket], Awaitable[None]]


class Stop(NamedTuple):
    """Acts that stop the trades of a market and have them go on."""

    begin: Act
    end: Act


PAUSING: Final = Stop(pause, unpause)
HALTING: Final = Stop(halt, resume)
STOPS: Final = pytest.mark.parametrize("stop", [PAUSING, HALTING], ids=["paused", "halted"])
ACCOUNTS: Final = pytest.mark.parametrize("has_accounts", [False, True], ids=["one", "several"])


@pytest.fixture
async def event(rig: SettlementRig, traders: list[Trader]) -> SandboxMarket:
    """A market of the other exchange, at which the traders may trade as well."""
    event = await rig.open_event()
    for trader in traders:
        await rig.sandbox.allow(trader.account, rig.exchange(event))
    await rig.see()
    return event


async def with_accounts(rig: SettlementRig, *, has_accounts: bool) -> None:
    """Have a further account settle, if the case has one."""
    if has_accounts:
        rig.further_operators = (rig.sandbox.trader(FURTHER),)
        await rig.restart()
        await grant(rig)


async def go_on(rig: SettlementRig, passes: int, step_ms: int = LONG_MS) -> None:
    """Run passes while an exchange may be closed."""
    for _ in range(passes):
        with contextlib.suppress(ExchangeClosed):
            await rig.act()
        await rig.watch()
        await rig.sandbox.mine()
        rig.clock.move(step_ms)
        await rig.see()


async def sold(market: SandboxMarket, seller: Trader, buyer: Trader) -> str:
    await seller.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await buyer.buy(market, 40, 10 * UNIT)).trade_ids
    return trade_id


@ACCOUNTS
@STOPS
async def test_h4_a_trade_behind_one_that_is_stopped_keeps_no_order_of_strangers_from_matching(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    event: SandboxMarket,
    stop: Stop,
    *,
    has_accounts: bool,
) -> None:
    await with_accounts(rig, has_accounts=has_accounts)
    alice, bob, carol = traders
    dave = await rig.trader(6)
    await stop.begin(rig, event)
    stopped = await minted(event, [alice, bob])
    bad = await sold(market, alice, bob)
    await give_away(rig, market, alice, carol)
    await go_on(rig, 1)
    assert await rig.statuses([stopped, bad]) == [TradeStatus.MATCHED, TradeStatus.RETRYING]
    await go_on(rig, 3)
    assert rig.exchange(market) not in lags_of(rig.engine.state, rig.clock.now_ms())
    await carol.sell(market, 50, 10 * UNIT)
    buying = dave.placing(market, dave.order(market, Side.BUY, 50, 10 * UNIT))
    assert not SettlementLag(rig.engine).refusal_of(buying)

    await go_on(rig, rig.options.attempts_max)
    assert await rig.statuses([stopped, bad]) == [TradeStatus.MATCHED, TradeStatus.FAILED]
    await stop.end(rig, event)
    await rig.settle()
    assert await rig.statuses([stopped]) == [CONFIRMED]
    await rig.check_ledger()


@STOPS
async def test_h4_with_several_accounts_a_wallet_settles_at_once_what_needs_nothing_of_its_stopped_trade(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    event: SandboxMarket,
    stop: Stop,
) -> None:
    await with_accounts(rig, has_accounts=True)
    await stop.begin(rig, event)
    stopped = await minted(event, traders[:2])
    good = await sold(market, traders[0], traders[1])
    await go_on(rig, 2, step_ms=1_000)
    assert await rig.statuses([stopped, good]) == [TradeStatus.MATCHED, CONFIRMED]
    assert (await rig.settlement(good)).attempts == 0
    await stop.end(rig, event)
    await rig.settle()
    assert await rig.statuses([stopped]) == [CONFIRMED]
    await rig.check_ledger()


class Owed(NamedTuple):
    """A wallet without collateral sells tokens where trades are stopped, and buys with that at the event."""

    stopped: str
    purchase: str
    purchase_order_id: str
    other_order_id: str


async def owed(
    rig: SettlementRig, market: SandboxMarket, event: SandboxMarket, traders: list[Trader]
) -> Owed:
    """Have both trades matched."""
    alice, bob, poor = traders
    collateral = rig.sandbox.deployment.collateral
    units = await rig.chain_units(poor.wallet, COLLATERAL)
    await poor.execute(collateral, Transfer(alice.wallet, units).encode())
    await rig.see()
    stopped = await sold(market, poor, bob)
    resting = await alice.buy(event, 60, 10 * UNIT, is_yes=False)
    bought = await poor.buy(event, 40, 10 * UNIT)
    (purchase,) = bought.trade_ids
    return Owed(stopped, purchase, bought.order_id, resting.order_id)


@ACCOUNTS
@STOPS
async def test_h4_a_trade_that_needs_what_a_stopped_one_brings_settles_when_that_goes_on_in_time(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    event: SandboxMarket,
    stop: Stop,
    *,
    has_accounts: bool,
) -> None:
    await with_accounts(rig, has_accounts=has_accounts)
    trades = await owed(rig, market, event, traders)
    await stop.begin(rig, market)
    await go_on(rig, 3, step_ms=5_000)
    failing = await rig.settlement(trades.purchase)
    assert 0 < failing.attempts < rig.options.attempts_max
    await stop.end(rig, market)
    await rig.settle(step_ms=5_000)
    assert await rig.statuses([trades.stopped, trades.purchase]) == [CONFIRMED] * 2
    assert (await rig.settlement(trades.purchase)).attempts == failing.attempts
    await rig.check_ledger()


@STOPS
async def test_h4_a_trade_that_needs_what_a_stopped_one_never_brings_fails_and_bars_nobody(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    event: SandboxMarket,
    stop: Stop,
) -> None:
    trades = await owed(rig, market, event, traders)
    await stop.begin(rig, market)
    await go_on(rig, rig.options.attempts_max + 1)
    assert await rig.statuses([trades.stopped, trades.purchase]) == [
        TradeStatus.MATCHED,
        TradeStatus.FAILED,
    ]
    row = await rig.order_row(trades.purchase_order_id)
    assert row.close_reason != CloseReason.REVERTS_ON_CHAIN
    back = await rig.order_row(trades.other_order_id)
    assert (back.status, back.matched_units) == (OrderStatus.LIVE, 0)
    assert not rig.engine.state.barred_wallets
    await stop.end(rig, market)
    await rig.settle()
    assert await rig.statuses([trades.stopped]) == [CONFIRMED]
    await rig.check_ledger()


@ACCOUNTS
async def test_h4_a_trade_waits_for_a_transaction_that_a_pause_overtakes_and_no_longer(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    event: SandboxMarket,
    *,
    has_accounts: bool,
) -> None:
    """The earlier trade is put back: it is named again, and nothing of its second try is stored."""
    await with_accounts(rig, has_accounts=has_accounts)
    alice, bob, carol = traders
    paused = await minted(event, [alice, bob])
    bad = await sold(market, alice, bob)
    await give_away(rig, market, alice, carol)
    await rig.automine(is_on=False)
    await rig.act()
    (sent,) = await rig.sent()
    assert sent.tx_id == f"settle:{paused}:1"
    row = await rig.settlement(bad)
    assert (row.attempts, row.tx_id) == (0, None)
    admin = rig.sandbox.account(AccountRole.ADMIN)
    early = Trader(rig, admin, admin.address, alice.signature_type)
    await early.overtake(rig.exchange(event), PAUSE.encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await go_on(rig, rig.options.attempts_max + 2)
    row = await rig.settlement(paused)
    assert (row.attempts, row.tx_id) == (1, f"settle:{paused}:2")
    assert await rig.statuses([paused, bad]) == [TradeStatus.RETRYING, TradeStatus.FAILED]

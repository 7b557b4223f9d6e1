"""Orders go back to their book when a trade fails because another wallet could not pay (D-15)."""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from tests.rigs.fault_proxy import FaultProxy, refuse
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import HELD, UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import (
    SAFE_TRANSFER_FROM,
    Approve,
    SetApprovalForAll,
    Transfer,
)
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.settlement import PART_SHORT
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.outbox.refused_orders import load_refused_orders

pytestmark = pytest.mark.anyio

LIVE, MATCHED, CANCELED = OrderStatus.LIVE, OrderStatus.MATCHED, OrderStatus.CANCELED
CONFIRMED, FAILED = TradeStatus.CONFIRMED, TradeStatus.FAILED
LONG_MS: Final = 60_000

Withdrawal = Callable[[SettlementRig, SandboxMarket, Trader], Awaitable[None]]


async def take_allowance(rig: SettlementRig, market: SandboxMarket, trader: Trader) -> None:
    del market
    deployment = rig.sandbox.deployment
    await trader.execute(deployment.collateral, Approve(deployment.exchange, 0).encode())


async def take_collateral(rig: SettlementRig, market: SandboxMarket, trader: Trader) -> None:
    del market
    units = await rig.chain_units(trader.wallet, COLLATERAL)
    away = rig.sandbox.trader(7).address
    await trader.execute(rig.sandbox.deployment.collateral, Transfer(away, units).encode())


async def take_tokens(rig: SettlementRig, market: SandboxMarket, trader: Trader) -> None:
    token = market.tokens.yes
    units = await rig.chain_units(trader.wallet, AssetId(str(token)))
    away = rig.sandbox.trader(7).address
    gift = SAFE_TRANSFER_FROM.encode(trader.wallet, away, token, units, b"")
    await trader.execute(rig.sandbox.deployment.conditional_tokens, gift)


async def take_approval(rig: SettlementRig, market: SandboxMarket, trader: Trader) -> None:
    del market
    deployment = rig.sandbox.deployment
    calldata = SetApprovalForAll(deployment.exchange, is_approved=False).encode()
    await trader.execute(deployment.conditional_tokens, calldata)


async def state_of(rig: SettlementRig, order_id: Bytes32) -> tuple[OrderStatus, int]:
    """Return an order's status and matched units, as the tables have them."""
    await rig.projection.catch_up()
    row = await rig.order_row(order_id)
    return row.status, row.matched_units


async def reason_of(rig: SettlementRig, order_id: Bytes32) -> str | None:
    return (await rig.order_row(order_id)).close_reason


@pytest.mark.parametrize("withdraw", [take_allowance, take_collateral])
async def test_d15_a_taker_that_sweeps_a_book_and_cannot_pay_leaves_it_as_it_was(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], withdraw: Withdrawal
) -> None:
    alice, bob, liar = traders
    whole = await alice.sell(market, 40, 10 * UNIT)
    part = await bob.sell(market, 41, 30 * UNIT)
    swept = await liar.buy(market, 41, 20 * UNIT)
    await withdraw(rig, market, liar)
    await rig.settle(step_ms=LONG_MS)
    assert await rig.statuses(swept.trade_ids) == [FAILED]
    assert await state_of(rig, whole.order_id) == (LIVE, 0)
    assert await state_of(rig, part.order_id) == (LIVE, 0)
    assert await state_of(rig, swept.order_id) == (MATCHED, 20 * UNIT)
    (opened,) = rig.engine.state.market_by_id.values()
    book = [(each.order_id, each.remaining_units) for each in opened.book.orders()]
    assert book == [(whole.order_id, 10 * UNIT), (part.order_id, 30 * UNIT)]
    await rig.restart()
    assert {whole.order_id, part.order_id} == set(rig.engine.state.live_orders)
    await rig.check_ledger()


async def test_d15_the_rest_of_an_order_that_was_not_paid_for_closes_and_never_meets_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, liar, _ = traders
    await rig.see()
    resting = await alice.sell(market, 40, 10 * UNIT)
    taker = await liar.buy(market, 40, 15 * UNIT)
    deployment = rig.sandbox.deployment
    allowance = Approve(deployment.exchange, 3 * UNIT).encode()
    await liar.execute(deployment.collateral, allowance)
    for _ in range(rig.options.attempts_max):
        await rig.act()
        rig.clock.move(LONG_MS)
    await rig.see()
    await rig.see()
    assert await rig.statuses(taker.trade_ids) == [FAILED]
    assert await state_of(rig, taker.order_id) == (CANCELED, 10 * UNIT)
    assert await reason_of(rig, taker.order_id) == CloseReason.UNDERFUNDED
    assert await state_of(rig, resting.order_id) == (LIVE, 0)
    assert list(rig.engine.state.live_orders) == [resting.order_id]
    assert not rig.engine.state.unsettled_trades


@pytest.mark.parametrize("withdraw", [take_tokens, take_approval])
async def test_d15_a_maker_without_its_tokens_gives_the_taker_its_order_back(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], withdraw: Withdrawal
) -> None:
    liar, bob, _ = traders
    resting = await liar.sell(market, 40, 30 * UNIT)
    taker = await bob.buy(market, 40, 10 * UNIT)
    await withdraw(rig, market, liar)
    await rig.settle(step_ms=LONG_MS)
    assert await rig.statuses(taker.trade_ids) == [FAILED]
    assert await state_of(rig, taker.order_id) == (LIVE, 0)
    assert await state_of(rig, resting.order_id) == (CANCELED, 10 * UNIT)
    assert await reason_of(rig, resting.order_id) == CloseReason.UNDERFUNDED
    async with rig.database.reading() as tx:
        (blamed,) = await load_refused_orders(tx, taker.trade_ids)
    assert (blamed.order_id, blamed.part, blamed.is_blamed) == (resting.order_id, PART_SHORT, True)


async def test_d15_a_taker_gets_back_the_part_of_the_one_maker_that_could_not_pay(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, liar, bob = traders
    fair = await alice.sell(market, 40, 10 * UNIT)
    short = await liar.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 40, 20 * UNIT)
    await take_tokens(rig, market, liar)
    await rig.settle(step_ms=LONG_MS)
    assert await rig.statuses(taker.trade_ids) == [CONFIRMED]
    assert await state_of(rig, fair.order_id) == (MATCHED, 10 * UNIT)
    assert await state_of(rig, short.order_id) == (MATCHED, 10 * UNIT)
    assert await state_of(rig, taker.order_id) == (LIVE, 10 * UNIT)
    await rig.check_ledger()


async def test_d15_where_both_sides_could_not_pay_nothing_comes_back(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    resting = await alice.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 40, 10 * UNIT)
    await take_tokens(rig, market, alice)
    await take_allowance(rig, market, bob)
    await rig.settle(step_ms=LONG_MS)
    assert await state_of(rig, resting.order_id) == (MATCHED, 10 * UNIT)
    assert await state_of(rig, taker.order_id) == (MATCHED, 10 * UNIT)
    async with rig.database.reading() as tx:
        blamed = {each.order_id for each in await load_refused_orders(tx, taker.trade_ids)}
    assert blamed == {resting.order_id, taker.order_id}


async def test_d15_a_wallet_that_lacks_what_a_failed_trade_would_bring_is_not_held_to_it(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """Its buyer gets its order back, and what it bought itself rests again: the first seller lacks the tokens."""
    liar, carol, _ = traders
    between = await rig.trader(6)
    await rig.see()
    await liar.sell(market, 40, 10 * UNIT)
    bought = await between.buy(market, 40, 10 * UNIT)
    sold = await between.sell(market, 50, 10 * UNIT)
    last = await carol.buy(market, 50, 10 * UNIT)
    await take_tokens(rig, market, liar)
    await rig.settle(step_ms=LONG_MS)
    assert await rig.statuses([*bought.trade_ids, *last.trade_ids]) == [FAILED, FAILED]
    assert await state_of(rig, bought.order_id) == (LIVE, 0)
    assert await state_of(rig, last.order_id) == (LIVE, 0)
    assert await state_of(rig, sold.order_id) == (MATCHED, 10 * UNIT)
    assert not rig.engine.state.barred_wallets


async def test_d15_a_node_that_does_not_say_who_could_not_pay_delays_the_end_of_the_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    rig.change(attempts_max=1)
    alice, liar, _ = traders
    resting = await alice.sell(market, 40, 10 * UNIT)
    taker = await liar.buy(market, 40, 10 * UNIT)
    await take_allowance(rig, market, liar)
    await rig.begin()
    proxy.fail("eth_blockNumber", refuse("daily quota exceeded", -32005))
    await rig.act()
    (trade_id,) = taker.trade_ids
    assert not (await rig.settlement(trade_id)).is_given_up
    rig.clock.move(LONG_MS)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [FAILED]
    assert await state_of(rig, resting.order_id) == (LIVE, 0)


async def test_d15_a_wallet_that_pays_again_in_time_settles(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 40, 10 * UNIT)
    await take_allowance(rig, market, bob)
    for _ in range(rig.options.attempts_max - 1):
        await rig.act()
        rig.clock.move(LONG_MS)
    deployment = rig.sandbox.deployment
    await bob.execute(deployment.collateral, Approve(deployment.exchange, HELD).encode())
    await rig.settle()
    assert await rig.statuses(taker.trade_ids) == [CONFIRMED]
    await rig.check_ledger()

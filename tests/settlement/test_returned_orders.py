"""Orders of honest wallets go back to their book when a trade fails that another one is to blame for (D-15)."""

from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket, catch_up
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_two_faced import a_two_faced_trader

from foretell.domain.exchange.arrivals import chain_cancels
from foretell.domain.exchange.commands import BarWallet
from foretell.domain.exchange.order import OrderStatus, Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Bytes32

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("earlier_exchange")]

LIVE, MATCHED = OrderStatus.LIVE, OrderStatus.MATCHED
CONFIRMED: Final = TradeStatus.CONFIRMED


async def state_of(rig: SettlementRig, order_id: Bytes32) -> tuple[OrderStatus, int]:
    """Return an order's status and matched units, as the tables have them."""
    await rig.projection.catch_up()
    row = await rig.order_row(order_id)
    return row.status, row.matched_units


async def test_d15_a_two_faced_taker_sweeps_a_book_and_leaves_it_as_it_was(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    liar = await a_two_faced_trader(rig, market)
    whole = await alice.sell(market, 40, 10 * UNIT)
    part = await bob.sell(market, 41, 30 * UNIT)
    await liar.buy(market, 41, 20 * UNIT)
    assert await state_of(rig, whole.order_id) == (MATCHED, 10 * UNIT)
    await rig.settle()
    assert await state_of(rig, whole.order_id) == (LIVE, 0)
    assert await state_of(rig, part.order_id) == (LIVE, 0)
    (opened,) = rig.engine.state.market_by_id.values()
    book = [(each.order_id, each.remaining_units) for each in opened.book.orders()]
    assert book == [(whole.order_id, 10 * UNIT), (part.order_id, 30 * UNIT)]
    before = rig.engine.state.live_orders.keys()
    await rig.restart()
    assert rig.engine.state.live_orders.keys() == before
    (trade_id,) = (await traders[2].buy(market, 40, 10 * UNIT)).trade_ids
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    await rig.check_ledger()


async def test_d15_a_taker_keeps_what_settled_and_the_rest_of_its_order_rests(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    liar = await a_two_faced_trader(rig, market)
    await liar.buy(market, 60, 20 * UNIT, is_yes=False)
    await alice.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 40, 30 * UNIT)
    await rig.settle()
    assert await state_of(rig, taker.order_id) == (LIVE, 10 * UNIT)
    await rig.check_ledger()


async def test_d15_an_order_that_its_maker_ended_on_the_chain_does_not_come_back(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    resting = await alice.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 40, 10 * UNIT)
    await rig.projection.catch_up()
    await alice.cancel_on_chain((await rig.order_row(resting.order_id)).signed)
    await rig.settle()
    assert await state_of(rig, resting.order_id) == (MATCHED, 10 * UNIT)
    assert await state_of(rig, taker.order_id) == (LIVE, 0)


async def test_d15_an_order_whose_cancel_was_forgotten_costs_nobody_anything(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of cancels of unknown orders the newest are remembered: the order is placed, and its trade fails."""
    monkeypatch.setattr(chain_cancels, "CANCELS_KEPT_MIN", 1)
    alice, bob, _ = traders
    ended, *others = [alice.order(market, Side.SELL, 40, size * UNIT) for size in (10, 11, 12)]
    for order in (ended, *others):
        await alice.cancel_on_chain(order)
    await rig.see()
    placed = await alice.place(market, ended)
    taker = await bob.buy(market, 40, 10 * UNIT)
    await rig.settle()
    assert await rig.statuses(taker.trade_ids) == [TradeStatus.FAILED]
    assert await rig.sent() == []
    assert await state_of(rig, placed.order_id) == (MATCHED, 10 * UNIT)
    assert await state_of(rig, taker.order_id) == (LIVE, 0)
    await rig.check_ledger()


TRANSFERS_ALONE: Final = "0x5f3560e01c63a9059cbb146011575f5ffd5b60015f5260205ff3"
"""A token whose `transfer` returns true, and of which every other function reverts."""


async def test_d15_nothing_comes_back_when_nobody_is_to_blame(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    resting = await alice.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 40, 10 * UNIT)
    collateral = rig.sandbox.deployment.collateral
    code = await rig.sandbox.rpc.call("eth_getCode", collateral, "latest")
    await rig.sandbox.rpc.send("anvil_setCode", collateral, TRANSFERS_ALONE)
    await rig.settle(step_ms=60_000)
    await rig.sandbox.rpc.send("anvil_setCode", collateral, code)
    assert await rig.statuses(taker.trade_ids) == [TradeStatus.FAILED]
    assert await state_of(rig, resting.order_id) == (MATCHED, 10 * UNIT)
    assert await state_of(rig, taker.order_id) == (MATCHED, 10 * UNIT)


async def test_a_trade_fails_also_when_the_last_command_wrote_nothing_to_the_tables(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    liar = await a_two_faced_trader(rig, market)
    await traders[0].sell(market, 40, 10 * UNIT)
    (trade_id,) = (await liar.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    stranger = liar.account.address
    await rig.engine.submit(BarWallet(rig.clock.now_ms(), stranger, is_barred=True, cause="a bar"))
    assert rig.engine.sequence > rig.projection.sequence
    for _ in range(3):
        await rig.act()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await catch_up(rig.indexer)
    assert (await rig.settlement(trade_id)).is_given_up
    await rig.see()
    await rig.see()
    assert await rig.statuses([trade_id]) == [TradeStatus.FAILED]

"""Wallets that pass every simulation and burn all gas when they are mined (H-1)."""

from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Bytes32, parse_address
from foretell.store.trading.trades import load_trade_ids

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
FAILED: Final = TradeStatus.FAILED
HANDLER: Final = parse_address("0x" + "ba" * 20)
TWO_FACED: Final = "0x3a600c575f355f5260205ff35bfe"
"""Without a gas price, as in a simulation, it returns the selector that it was called with."""
SET_FALLBACK_HANDLER: Final = contract_function("setFallbackHandler(address)")


async def a_two_faced_trader(rig: SettlementRig, market: SandboxMarket) -> Trader:
    """Return the owner of a Safe with a handler of its own: what any owner of a Safe may set."""
    trader = await rig.safe_trader(5, market)
    await rig.sandbox.rpc.send("anvil_setCode", HANDLER, TWO_FACED)
    await trader.execute(trader.wallet, SET_FALLBACK_HANDLER.encode(HANDLER))
    await rig.see()
    return trader


async def parts_of(rig: SettlementRig, order_ids: list[Bytes32]) -> list[TradeStatus]:
    """Return the statuses of the newest trades of these orders."""
    async with rig.database.reading() as tx:
        ids_by_order = await load_trade_ids(tx, order_ids)
    return await rig.statuses([ids_by_order[order_id][-1] for order_id in order_ids])


async def test_h1_a_two_faced_maker_loses_its_own_fill_and_its_order_alone(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, _, taker = traders
    liar = await a_two_faced_trader(rig, market)
    fair = await alice.sell(market, 40, 10 * UNIT)
    lying = await liar.buy(market, 60, 100 * UNIT, is_yes=False)
    (whole,) = (await taker.buy(market, 40, 20 * UNIT)).trade_ids
    await rig.settle()
    assert await parts_of(rig, [fair.order_id, lying.order_id]) == [CONFIRMED, FAILED]
    order = await rig.order_row(lying.order_id)
    assert (order.status, order.close_reason) == (
        OrderStatus.CANCELED,
        CloseReason.REVERTS_ON_CHAIN,
    )
    sent = await rig.sent()
    assert [each.status for each in sent].count(TxStatus.FAILED) == 1 + 2
    assert len(sent) == 4
    assert (await rig.settlement(whole)).failure.startswith("reverted in block ")
    await rig.check_ledger()


async def test_h1_a_two_faced_taker_ends_after_two_tries_and_is_the_one_blamed(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    liar = await a_two_faced_trader(rig, market)
    for maker, price_ticks in ((alice, 40), (bob, 41)):
        await maker.sell(market, price_ticks, 10 * UNIT)
    swept = await liar.buy(market, 41, 30 * UNIT)
    await rig.settle()
    order = await rig.order_row(swept.order_id)
    assert (order.status, order.close_reason) == (
        OrderStatus.CANCELED,
        CloseReason.REVERTS_ON_CHAIN,
    )
    assert {each.status for each in await rig.sent()} == {TxStatus.FAILED}
    assert len(await rig.sent()) == 2 + 2
    await rig.check_ledger()


async def test_h1_between_two_safes_the_honest_taker_is_acquitted_by_another_fill(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, _, _ = traders
    liar = await a_two_faced_trader(rig, market)
    honest = await rig.safe_trader(4, market)
    await rig.see()
    fair = await alice.sell(market, 40, 10 * UNIT)
    lying = await liar.buy(market, 60, 100 * UNIT, is_yes=False)
    taken = await honest.buy(market, 40, 30 * UNIT)
    await rig.settle()
    assert await parts_of(rig, [fair.order_id, lying.order_id]) == [CONFIRMED, FAILED]
    assert (await rig.order_row(taken.order_id)).close_reason == CloseReason.FILLED
    assert (await rig.order_row(lying.order_id)).status is OrderStatus.CANCELED
    await rig.check_ledger()

"""Wallets that pass every simulation and burn all gas when they are mined (H-1)."""

from typing import Final

import pytest
from tests.rigs.fault_proxy import (
    Answer,
    Fault,
    FaultProxy,
    Forward,
    Request,
    lose_request,
    refuse,
)
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import Approve
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Bytes32, parse_address
from foretell.store.trading.trades import load_trade_ids

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("earlier_exchange")]

CONFIRMED: Final = TradeStatus.CONFIRMED
FAILED: Final = TradeStatus.FAILED
HANDLER: Final = parse_address("0x" + "ba" * 20)
TWO_FACED: Final = "0x5f355f5260205ff3"
"""It returns the selector that it was called with, until its owner sees the transaction that calls it."""
BURNING: Final = "0xfe"
REVERTING: Final = "0x5f5ffd"
SET_FALLBACK_HANDLER: Final = contract_function("setFallbackHandler(address)")


def overtaking(rig: SettlementRig, mined: str) -> Fault:
    """The owner of the handler changes it before a transaction of settlement is mined, and back after it.

    A simulation has the sender, the price and the block of the transaction, and nothing that comes later.
    """
    rpc = rig.sandbox.rpc

    async def fault(_request: Request, forward: Forward) -> Answer | None:
        if await rpc.send("eth_getCode", HANDLER, "latest") != TWO_FACED:
            return await forward()
        await rpc.send("anvil_setCode", HANDLER, mined)
        answer = await forward()
        await rpc.send("anvil_setCode", HANDLER, TWO_FACED)
        return answer

    return fault


async def a_two_faced_trader(
    rig: SettlementRig, market: SandboxMarket, mined: str = BURNING
) -> Trader:
    """Return the owner of a Safe with a handler of its own: what any owner of a Safe may set."""
    assert rig.proxy is not None
    rig.proxy.fail_always("eth_sendRawTransaction", overtaking(rig, mined))
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


async def closed_by_the_chain(rig: SettlementRig, order_id: Bytes32) -> bool:
    order = await rig.order_row(order_id)
    is_reverting = order.close_reason == CloseReason.REVERTS_ON_CHAIN
    return order.status is OrderStatus.CANCELED and is_reverting


async def settle_beside_a_liar(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> Bytes32:
    """Fill an honest and a lying maker with one order, and return the liar's; the honest fill settles."""
    alice, _, taker = traders
    liar = await a_two_faced_trader(rig, market)
    fair = await alice.sell(market, 40, 10 * UNIT)
    lying = await liar.buy(market, 60, 100 * UNIT, is_yes=False)
    await taker.buy(market, 40, 20 * UNIT)
    await rig.settle()
    assert await parts_of(rig, [fair.order_id, lying.order_id]) == [CONFIRMED, FAILED]
    return lying.order_id


async def test_h1_a_two_faced_maker_loses_its_own_fill_and_its_order_alone(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    lying = await settle_beside_a_liar(rig, market, traders)
    assert await closed_by_the_chain(rig, lying)
    statuses = [each.status for each in await rig.sent()]
    assert (len(statuses), statuses.count(TxStatus.FAILED)) == (2, 1)
    await rig.check_ledger()


async def test_h1_a_two_faced_taker_ends_after_one_try(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    liar = await a_two_faced_trader(rig, market)
    for maker, price_ticks in ((alice, 40), (bob, 41)):
        await maker.sell(market, price_ticks, 10 * UNIT)
    swept = await liar.buy(market, 41, 30 * UNIT)
    await rig.settle()
    assert await closed_by_the_chain(rig, swept.order_id)
    assert [each.status for each in await rig.sent()] == [TxStatus.FAILED]
    await rig.check_ledger()


async def test_h1_between_two_safes_the_one_that_failed_is_blamed(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    del traders
    liar = await a_two_faced_trader(rig, market)
    honest = await rig.safe_trader(4, market)
    await rig.see()
    resting = await honest.sell(market, 40, 30 * UNIT)
    lying = await liar.buy(market, 40, 10 * UNIT)
    await rig.settle()
    assert await parts_of(rig, [lying.order_id]) == [FAILED]
    assert (await rig.order_row(resting.order_id)).status is OrderStatus.LIVE
    assert len(await rig.sent()) == 1
    await rig.check_ledger()


async def test_h1_without_traces_honest_fills_settle_and_the_only_suspect_is_blamed_in_the_end(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    proxy.fail_always("debug_traceTransaction", refuse("the method does not exist", -32601))
    lying = await settle_beside_a_liar(rig, market, traders)
    assert await closed_by_the_chain(rig, lying)
    statuses = [each.status for each in await rig.sent()]
    assert (len(statuses), statuses.count(TxStatus.FAILED)) == (4, 3)
    await rig.check_ledger()


async def test_h1_a_taker_that_takes_its_allowance_away_around_a_block_has_no_safe_blamed(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    taker, deployment = traders[0], rig.sandbox.deployment
    honest = await rig.safe_trader(4, market)
    await rig.see()
    resting = await honest.sell(market, 40, 30 * UNIT)
    (trade_id,) = (await taker.buy(market, 40, 10 * UNIT)).trade_ids
    for _ in range(rig.options.mined_reverts_max):
        await rig.automine(is_on=False)
        await rig.act()
        await taker.overtake(deployment.collateral, Approve(deployment.exchange, 0).encode())
        await rig.sandbox.mine(2)
        await rig.automine(is_on=True)
        await rig.sandbox.allow(taker.account, deployment.exchange)
        await rig.act()
        await rig.act()
        rig.clock.move(60_000)
        await rig.see()
    assert (await rig.settlement(trade_id)).is_given_up
    assert (await rig.order_row(resting.order_id)).status is OrderStatus.LIVE
    assert await rig.statuses([trade_id]) == [FAILED]


ENDLESS_CALLS: Final = "0x5b5f5f6120005f60ee61fffffa505f56"
"""It calls nobody with 8 KiB until its gas ends: the trace lists them all."""


async def after_a_mined_lie(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> str:
    """Have a liar's trade revert when mined, and return an honest trade that comes after it."""
    alice, bob, _ = traders
    liar = await a_two_faced_trader(rig, market, ENDLESS_CALLS)
    await alice.sell(market, 40, 20 * UNIT)
    await liar.buy(market, 40, 10 * UNIT)
    await rig.act()
    await rig.sandbox.mine(2)
    await rig.context.operator.run_once()
    (honest,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    return honest


async def test_h1_a_trace_too_large_to_read_holds_up_no_other_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """The wallet chooses how many calls its trace lists; the node's answer has 70 MB here."""
    honest = await after_a_mined_lie(rig, market, traders)
    await rig.act()
    assert f"settle:{honest}:1" in [each.tx_id for each in await rig.sent()]


async def test_h1_a_trace_that_never_comes_holds_up_no_other_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    proxy.fail_always("debug_traceTransaction", lose_request)
    honest = await after_a_mined_lie(rig, market, traders)
    await rig.act()
    assert f"settle:{honest}:1" in [each.tx_id for each in await rig.sent()]


@pytest.mark.parametrize("has_traces", [True, False])
async def test_h1_a_wallet_that_fails_while_it_is_judged_costs_no_more_than_another(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    *,
    has_traces: bool,
) -> None:
    if not has_traces:
        proxy.fail_always("debug_traceTransaction", lose_request)
    liar = await a_two_faced_trader(rig, market)
    await traders[0].sell(market, 40, 20 * UNIT)
    (trade_id,) = (await liar.buy(market, 40, 10 * UNIT)).trade_ids
    for _ in range(rig.options.mined_reverts_max + 2):
        await rig.act()
        await rig.sandbox.mine(2)
        await rig.context.operator.run_once()
        await rig.sandbox.rpc.send("anvil_setCode", HANDLER, REVERTING)
        await rig.act()
        await rig.sandbox.rpc.send("anvil_setCode", HANDLER, TWO_FACED)
        rig.clock.move(60_000)
        await rig.see()
    failed = [each for each in await rig.sent() if each.status is TxStatus.FAILED]
    assert len(failed) == (1 if has_traces else rig.options.mined_reverts_max)
    assert await rig.statuses([trade_id]) == [FAILED]


async def test_a_node_that_refuses_to_judge_a_mined_revert_holds_up_no_other_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, _ = traders
    liar = await a_two_faced_trader(rig, market)
    await alice.sell(market, 40, 20 * UNIT)
    (bad,) = (await liar.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.act()
    await rig.sandbox.mine(2)
    await rig.context.operator.run_once()
    (good,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    proxy.fail_always("debug_traceTransaction", refuse("the method does not exist", -32601))
    proxy.fail("eth_call", refuse("daily quota exceeded", -32005))
    await rig.act()
    assert (await rig.settlement(bad)).attempts == 1
    assert f"settle:{good}:1" in [each.tx_id for each in await rig.sent()]

"""The gas of settlements that are mined in vain is counted for the wallet that can have been the cause (H-1)."""

import pytest
from tests.rigs.fault_proxy import FaultProxy, refuse
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import encode_cancel_orders
from tests.settlement.rig import HELD, UNIT, SettlementRig, Trader
from tests.settlement.test_two_faced import a_two_faced_trader

from foretell.domain.contracts.calldata import ADD_OPERATOR, INCREMENT_NONCE, Approve
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.exchange import WalletBarred
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.order import OrderStatus, OrderType, Side
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.exchange.wallets.wallet_bars import BarOptions
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.match_call import match_call
from foretell.settlement.stored import load_matched
from foretell.store.outbox.wallet_bars import load_barred, load_gas

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("earlier_exchange")]

NO_TRACES = refuse("the method does not exist", -32601)


async def charged(rig: SettlementRig) -> set[Address]:
    """Return the wallets whose failed settlements have cost gas."""
    async with rig.database.reading() as tx:
        return {each.wallet for each in await load_gas(tx)}


async def mine_behind(rig: SettlementRig, *overtaking: tuple[Trader, Address, bytes]) -> None:
    """Have the transactions that settlement sends now come after these in their block."""
    await rig.automine(is_on=False)
    await rig.act()
    for trader, target, calldata in overtaking:
        await trader.overtake(target, calldata)
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.act()
    await rig.act()


@pytest.mark.parametrize("has_traces", [True, False])
@pytest.mark.parametrize("way", ["cancel", "nonce"])
async def test_h1_a_maker_that_ends_its_order_in_the_block_of_the_match_is_charged(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    way: str,
    *,
    has_traces: bool,
) -> None:
    if not has_traces:
        proxy.fail_always("debug_traceTransaction", NO_TRACES)
    racer, bob, _ = traders
    order = racer.order(market, Side.SELL, 40, 10 * UNIT)
    await racer.place(market, order)
    taker = await bob.buy(market, 40, 10 * UNIT)
    calldata = encode_cancel_orders([order]) if way == "cancel" else INCREMENT_NONCE.encode()
    await mine_behind(rig, (racer, rig.sandbox.deployment.exchange, calldata))
    await rig.settle()
    assert await charged(rig) == {racer.wallet}
    async with rig.database.reading() as tx:
        assert await load_barred(tx) == []
    assert await rig.statuses(taker.trade_ids) == [TradeStatus.FAILED]
    await rig.projection.catch_up()
    assert (await rig.order_row(taker.order_id)).status is OrderStatus.LIVE


async def test_h1_without_traces_a_wallet_that_could_not_pay_after_the_block_is_charged(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    proxy.fail_always("debug_traceTransaction", NO_TRACES)
    alice, liar, _ = traders
    deployment = rig.sandbox.deployment
    await alice.sell(market, 40, 10 * UNIT)
    await liar.buy(market, 40, 10 * UNIT)
    await mine_behind(rig, (liar, deployment.collateral, Approve(deployment.exchange, 0).encode()))
    assert await charged(rig) == {liar.wallet}


async def test_h1_without_traces_the_gas_bound_bars_a_wallet_that_fails_only_when_it_is_mined(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    rig.bars = BarOptions(gas_per_day_max=1_000_000)
    await rig.restart()
    proxy.fail_always("debug_traceTransaction", NO_TRACES)
    maker = traders[0]
    liar = await a_two_faced_trader(rig, market)
    resting = await maker.sell(market, 40, 100 * UNIT)
    tries = 0
    while not rig.engine.state.barred_wallets:
        await liar.buy(market, 40, 10 * UNIT)
        await rig.settle(step_ms=5_000)
        await rig.see()
        tries += 1
        assert tries < 4
    assert await charged(rig) == {liar.wallet}
    with pytest.raises(WalletBarred, match="gas in a day"):
        await liar.buy(market, 40, 10 * UNIT)
    row = await rig.order_row(resting.order_id)
    assert (row.status, row.matched_units) == (OrderStatus.LIVE, 0)


async def test_h1_an_account_that_hides_what_it_took_away_within_a_block_frames_no_safe(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    """Its allowance is there before and after the block, and the Safe is the only wallet with code."""
    proxy.fail_always("debug_traceTransaction", NO_TRACES)
    liar, deployment = traders[0], rig.sandbox.deployment
    honest = await rig.safe_trader(4, market)
    await rig.see()
    await honest.sell(market, 40, 30 * UNIT)
    (trade_id,) = (await liar.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.automine(is_on=False)
    await rig.act()
    calls = [Approve(deployment.exchange, units).encode() for units in (0, HELD)]
    await liar.overtake(deployment.collateral, calls[0])
    await send_last(rig, liar, deployment.collateral, calls[1])
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.act()
    await rig.act()
    assert (await rig.settlement(trade_id)).attempts == 1
    assert await charged(rig) == set()


async def send_last(rig: SettlementRig, trader: Trader, target: Address, calldata: bytes) -> None:
    """Send a transaction that comes last in its block."""
    block = await rig.sandbox.rpc.call("eth_getBlockByNumber", "latest", False)  # noqa: FBT003 - a parameter of the node's
    call = {
        "from": trader.account.address,
        "to": target,
        "data": "0x" + calldata.hex(),
        "gas": hex(200_000),
        "maxFeePerGas": block["baseFeePerGas"],
        "maxPriorityFeePerGas": "0x0",
    }
    await rig.sandbox.rpc.send("eth_sendTransaction", call)


async def test_h1_a_wallet_that_lacks_what_an_earlier_trade_would_bring_is_not_charged(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    racer, carol, _ = traders
    between = await rig.trader(6)
    await rig.see()
    order = racer.order(market, Side.SELL, 40, 10 * UNIT)
    await racer.place(market, order)
    await between.buy(market, 40, 10 * UNIT)
    await between.sell(market, 50, 10 * UNIT)
    await carol.buy(market, 50, 10 * UNIT)
    cancel = encode_cancel_orders([order])
    await mine_behind(rig, (racer, rig.sandbox.deployment.exchange, cancel))
    await rig.settle(step_ms=60_000)
    assert await charged(rig) == {racer.wallet}


async def test_h1_a_wallet_that_lacks_what_failed_within_a_batch_is_not_charged(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """The batch itself is confirmed: no transaction of the trade that was to bring the tokens has failed."""
    rig.has_batches = True
    await rig.restart()
    rig.change(batch_trades_max=2)
    racer, carol, dave = traders
    between = await rig.trader(6)
    await rig.see()
    await dave.sell(market, 30, 10 * UNIT)
    await carol.buy(market, 30, 10 * UNIT)
    order = racer.order(market, Side.SELL, 40, 10 * UNIT)
    await racer.place(market, order)
    await between.buy(market, 40, 10 * UNIT)
    await between.sell(market, 50, 10 * UNIT)
    sold = await carol.buy(market, 50, 10 * UNIT)
    cancel = encode_cancel_orders([order])
    await mine_behind(rig, (racer, rig.sandbox.deployment.exchange, cancel))
    assert (await rig.settlement(sold.trade_ids[0])).attempts == 1
    assert between.wallet not in await charged(rig)
    await rig.settle(step_ms=60_000)
    assert between.wallet not in await charged(rig)


@pytest.mark.parametrize("has_traces", [True, False])
async def test_h1_an_order_that_expires_before_its_block_costs_its_owner_nothing(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    *,
    has_traces: bool,
) -> None:
    if not has_traces:
        proxy.fail_always("debug_traceTransaction", NO_TRACES)
    late, bob, _ = traders
    block = await rig.sandbox.rpc.call("eth_getBlockByNumber", "latest", False)  # noqa: FBT003 - a parameter of the node's
    expires_s = max(int(block["timestamp"], 16), rig.clock.at_ms // 1000) + 1_000
    order = late.order(market, Side.SELL, 40, 10 * UNIT, expiration_s=expires_s)
    await late.place(market, order, OrderType.GTD)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.automine(is_on=False)
    await rig.act()
    await rig.sandbox.rpc.send("evm_setNextBlockTimestamp", expires_s + 1)
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.act()
    await rig.act()
    assert (await rig.settlement(trade_id)).attempts == 1
    assert await charged(rig) == set()


@pytest.mark.parametrize("has_traces", [True, False])
async def test_h1_both_wallets_that_end_their_orders_in_the_block_of_the_match_are_charged(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    *,
    has_traces: bool,
) -> None:
    if not has_traces:
        proxy.fail_always("debug_traceTransaction", NO_TRACES)
    maker, taker, _ = traders
    exchange = rig.sandbox.deployment.exchange
    sell = maker.order(market, Side.SELL, 40, 10 * UNIT)
    buy = taker.order(market, Side.BUY, 40, 10 * UNIT)
    await maker.place(market, sell)
    await taker.place(market, buy)
    cancels = [(maker, encode_cancel_orders([sell])), (taker, encode_cancel_orders([buy]))]
    await mine_behind(rig, *[(trader, exchange, calldata) for trader, calldata in cancels])
    assert await charged(rig) == {maker.wallet, taker.wallet}


async def test_h1_of_two_wallets_that_could_not_pay_the_one_that_lacks_a_delivery_is_not_charged(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    proxy.fail_always("debug_traceTransaction", NO_TRACES)
    racer, liar, _ = traders
    deployment, between = rig.sandbox.deployment, await rig.trader(6)
    await rig.see()
    order = racer.order(market, Side.SELL, 40, 10 * UNIT)
    await racer.place(market, order)
    await between.buy(market, 40, 10 * UNIT)
    await between.sell(market, 50, 10 * UNIT)
    await liar.buy(market, 50, 10 * UNIT)
    cancel = encode_cancel_orders([order])
    no_allowance = Approve(deployment.exchange, 0).encode()
    await mine_behind(
        rig, (racer, deployment.exchange, cancel), (liar, deployment.collateral, no_allowance)
    )
    assert await charged(rig) == {racer.wallet, liar.wallet}


async def test_h1_two_wallets_whose_orders_another_transaction_filled_are_not_charged(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """Another process that settles from a copy of the data, with an account of its own."""
    maker, taker, _ = traders
    other = await rig.trader(7)
    exchange = rig.sandbox.deployment.exchange
    admin = rig.sandbox.account(AccountRole.ADMIN)
    await rig.sandbox.call(admin, exchange, ADD_OPERATOR.encode(other.wallet))
    await maker.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await taker.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    (matched,) = await load_matched(rig.context, [Settlement(trade_id)])
    await rig.automine(is_on=False)
    await rig.act()
    await other.overtake(exchange, match_call(matched, "").calldata)
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.watch()
    await rig.see()
    (sent,) = await rig.sent()
    assert sent.status is TxStatus.FAILED
    await rig.act()
    assert await charged(rig) == set()
    await rig.settle()
    assert await rig.statuses([trade_id]) == [TradeStatus.CONFIRMED]

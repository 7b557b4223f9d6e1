"""Wallets that made settlements fail are barred, and probed until they have proved themselves (H-1)."""

import pytest
from tests.rigs.fault_proxy import FaultProxy, refuse
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_two_faced import HANDLER, a_two_faced_trader

from foretell.domain.contracts.calldata import Approve
from foretell.domain.errors.exchange import WalletBarred
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.exchange.wallets.wallet_bars import BarOptions, WalletBar
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.metrics import GAS
from foretell.settlement.operator_bars import bar, unbar
from foretell.settlement.wallet_bars import PROBE_GAS
from foretell.store.outbox.wallet_bars import load_bar

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("earlier_exchange")]


async def bar_of(rig: SettlementRig, wallet: Address) -> WalletBar | None:
    async with rig.database.reading() as tx:
        return await load_bar(tx, wallet)


async def lie(rig: SettlementRig, market: SandboxMarket, maker: Trader) -> Trader:
    """Have a two-faced wallet make a settlement fail, and return its owner."""
    liar = await a_two_faced_trader(rig, market)
    await maker.sell(market, 40, 10 * UNIT)
    await liar.buy(market, 40, 10 * UNIT)
    await rig.settle()
    return liar


async def test_h1_a_wallet_that_reverts_when_mined_is_barred_with_its_orders_and_over_a_restart(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    liar = await a_two_faced_trader(rig, market)
    other = await liar.buy(market, 10, 10 * UNIT)
    await traders[0].sell(market, 40, 10 * UNIT)
    await liar.buy(market, 40, 10 * UNIT)
    await rig.settle()
    await rig.see()
    assert (await rig.order_row(other.order_id)).close_reason == CloseReason.WALLET_BARRED
    await rig.restart()
    with pytest.raises(WalletBarred, match="reverts only when it is mined"):
        await liar.buy(market, 11, 10 * UNIT)
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert (found.is_barred, found.offences) == (True, 1)


async def test_h1_trades_of_a_barred_wallet_that_wait_cost_nothing_more(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    rig.change(in_flight_max=1)
    liar = await a_two_faced_trader(rig, market)
    await alice.sell(market, 40, 30 * UNIT)
    for _ in range(3):
        await liar.buy(market, 40, 10 * UNIT)
    honest = await alice.sell(market, 45, 10 * UNIT)
    await bob.buy(market, 45, 10 * UNIT)
    del honest
    await rig.settle()
    sent = [each.status for each in await rig.sent()]
    assert sent.count(TxStatus.FAILED) == 1
    assert len(sent) == 2
    await rig.check_ledger()


async def test_h1_a_wallet_that_passes_its_probe_trades_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    liar = await lie(rig, market, traders[0])
    proxy.heal()
    rig.clock.move(rig.bars.probe_delay_ms)
    for _ in range(4):
        await rig.act()
        await rig.sandbox.mine(2)
    await rig.see()
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert (found.is_barred, found.offences, found.probes) == (False, 1, 1)
    await traders[1].sell(market, 40, 10 * UNIT)
    (trade_id,) = (await liar.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.settle()
    assert await rig.statuses([trade_id]) == [TradeStatus.CONFIRMED]


async def test_h1_a_wallet_that_fails_its_probe_is_probed_after_twice_the_time_at_little_cost(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    liar = await lie(rig, market, traders[0])
    rig.clock.move(rig.bars.probe_delay_ms)
    for _ in range(4):
        await rig.act()
        await rig.sandbox.mine(2)
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert (found.is_barred, found.offences) == (True, 2)
    assert found.probe_at_ms == rig.clock.now_ms() + 2 * rig.bars.probe_delay_ms
    (probe,) = [each for each in await rig.sent() if each.tx_id.startswith("probe:")]
    assert (probe.status, probe.gas) == (TxStatus.FAILED, PROBE_GAS)


async def test_a_probe_whose_simulation_fails_costs_nothing(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    liar = await lie(rig, market, traders[0])
    await rig.sandbox.rpc.send("anvil_setCode", HANDLER, "0x5f5ffd")
    rig.clock.move(rig.bars.probe_delay_ms)
    await rig.act()
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert (found.is_barred, found.offences, found.probe_tx_id) == (True, 2, None)
    assert not [each for each in await rig.sent() if each.tx_id.startswith("probe:")]


async def test_a_probe_that_the_node_refuses_is_sent_later(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    liar = await lie(rig, market, traders[0])
    rig.clock.move(rig.bars.probe_delay_ms)
    proxy.fail("eth_call", refuse("daily quota exceeded", -32005))
    await rig.act()
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert (found.offences, found.probe_tx_id) == (1, None)
    assert found.probe_at_ms == rig.clock.now_ms() + rig.bars.probe_delay_ms


async def fail_to_pay(rig: SettlementRig, market: SandboxMarket, taker: Trader) -> None:
    """Have a taker lose its allowance in the block that settles its trade, and get it back."""
    deployment = rig.sandbox.deployment
    await taker.buy(market, 40, 10 * UNIT)
    await rig.automine(is_on=False)
    await rig.act()
    await taker.overtake(deployment.collateral, Approve(deployment.exchange, 0).encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.act()
    await rig.act()
    await rig.sandbox.allow(taker.account, deployment.exchange)
    await rig.see()


async def test_h1_a_wallet_may_cost_the_operator_so_much_gas_in_a_day(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.bars = BarOptions(gas_per_day_max=300_000)
    await rig.restart()
    maker, taker, _ = traders
    await maker.sell(market, 40, 30 * UNIT)
    counted = GAS.labels("wallet")._value.get()
    tries = 0
    while (found := await bar_of(rig, taker.wallet)) is None:
        await fail_to_pay(rig, market, taker)
        tries += 1
        assert tries < 8
    assert "failed settlements cost" in found.cause
    assert tries > 1
    assert GAS.labels("wallet")._value.get() - counted > rig.bars.gas_per_day_max
    assert await bar_of(rig, maker.wallet) is None
    await rig.see()
    with pytest.raises(WalletBarred, match="gas in a day"):
        await taker.buy(market, 10, 10 * UNIT)


async def test_a_bar_of_the_operator_lasts_until_it_ends_it(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await bar(rig.database, alice.wallet, "asked by a court", rig.clock.now_ms())
    await rig.settle()
    assert await rig.statuses([trade_id]) == [TradeStatus.CONFIRMED]
    rig.clock.move(rig.bars.probe_delay_ms_max)
    await rig.act()
    with pytest.raises(WalletBarred, match="asked by a court"):
        await alice.sell(market, 41, 10 * UNIT)
    await unbar(rig.database, alice.wallet, rig.clock.now_ms())
    await rig.see()
    await alice.sell(market, 41, 10 * UNIT)

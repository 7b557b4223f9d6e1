"""Two wallets that trade with each other faster than the chain settles."""

from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import SettlementRig, Trader

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine.settlement_lag import LAG_REFUSED_S, SettlementLag

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
UNIT: Final = 1_000_000
BACKLOG: Final = 60
PLACES: Final = 4
FAIR_PASSES_MAX: Final = 3
PASS_S: Final = 10
WAIT_S_MAX: Final = 400


@pytest.mark.parametrize("options", [{"in_flight_max": PLACES}, {"batch_trades_max": PLACES}])
async def test_h4_a_trade_of_strangers_settles_before_the_backlog_of_two_wallets(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    options: dict[str, int],
) -> None:
    rig.change(**{"in_flight_max": 1, "batched_per_pass_max": PLACES, **options})
    alice, bob, carol = traders
    dora = await rig.trader(6)
    await rig.see()
    dust: list[str] = []
    for _ in range(BACKLOG):
        await alice.sell(market, 40, UNIT)
        dust += (await bob.buy(market, 40, UNIT)).trade_ids
    await carol.sell(market, 40, 10 * UNIT)
    (fair,) = (await dora.buy(market, 40, 10 * UNIT)).trade_ids
    for _ in range(FAIR_PASSES_MAX):
        await rig.act()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await rig.see()
    assert await rig.statuses([fair]) == [CONFIRMED]
    waiting = [each for each in await rig.statuses(dust) if each is TradeStatus.MATCHED]
    assert len(waiting) > BACKLOG // 2
    rig.change(in_flight_max=32, batched_per_pass_max=200)
    await rig.settle()
    assert set(await rig.statuses(dust)) == {CONFIRMED}
    await rig.check_ledger()


@pytest.mark.parametrize("has_batches", [True, False])
async def test_h4_a_trade_that_waits_for_a_backlog_keeps_no_order_of_strangers_out(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], *, has_batches: bool
) -> None:
    """A maker sells on what a backlog brings: the buyer's trade waits for the last trade of it."""
    rig.has_batches = has_batches
    await rig.restart()
    rig.change(in_flight_max=2 if has_batches else PLACES, batched_per_pass_max=PLACES)
    alice, bob, carol = traders
    poor, stranger = await rig.trader(6), await rig.trader(7)
    await rig.sandbox.split(stranger.account, market, 100 * UNIT)
    await rig.see()
    for _ in range(BACKLOG):
        await poor.buy(market, 40, UNIT)
        await alice.sell(market, 40, UNIT)
    await poor.sell(market, 60, BACKLOG * UNIT)
    (behind,) = (await carol.buy(market, 60, BACKLOG * UNIT)).trade_ids
    await bob.buy(market, 50, 10 * UNIT)
    selling = stranger.placing(market, stranger.order(market, Side.SELL, 50, UNIT))
    lag = SettlementLag(rig.engine)
    assert lag.refusal_of(selling) is None
    waited_s = 0
    unsettled = rig.engine.state.unsettled_trades
    while behind in unsettled and unsettled[behind].status is TradeStatus.MATCHED:
        await rig.act()
        await rig.sandbox.mine()
        rig.clock.move(PASS_S * 1000)
        await rig.see()
        assert lag.refusal_of(selling) is None
        waited_s += PASS_S
        assert waited_s < WAIT_S_MAX
    assert waited_s > LAG_REFUSED_S
    await rig.settle()
    await rig.check_ledger()

"""Two wallets that trade with each other faster than the chain settles."""

from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import SettlementRig, Trader

from foretell.domain.exchange.trade import TradeStatus

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
UNIT: Final = 1_000_000
BACKLOG: Final = 60
PLACES: Final = 4
FAIR_PASSES_MAX: Final = 3


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

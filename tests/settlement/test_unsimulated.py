"""Batches that are sent without a simulation, and what follows where the guess was wrong."""

from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.fault_proxy import Answer, FaultProxy, Forward, Request, refuse
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_batches import ids_sent, matched, resold, together
from tests.settlement.test_waiting import PAUSE, UNPAUSE

from foretell.domain.contracts.batches import SETTLE
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ExchangeClosed
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.exchange.wallets.wallet_bars import DAY_MS, day_of
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.batch_call import SHARE_GAS
from foretell.settlement.batches import BATCH
from foretell.settlement.match_call import match_gas
from foretell.settlement.metrics import GAS
from foretell.settlement.plain_accounts import KNOWN_MS
from foretell.store.outbox.settlement_views import NOBODY
from foretell.store.tables import wallet_gas

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
FAILED: Final = TradeStatus.FAILED
MATCH_GAS: Final = match_gas(1) + SHARE_GAS
DELEGATION: Final = "0xef0100" + "11" * 20
"""The code of an account that has delegated itself (EIP-7702)."""


@pytest.fixture
async def rig(rig: SettlementRig) -> SettlementRig:
    """The rig on a deployment with the contract for batches."""
    rig.has_batches = True
    await rig.restart()
    return rig


class Simulations:
    """Counts the batches that a node simulates, and passes them on."""

    def __init__(self, rig: SettlementRig, proxy: FaultProxy) -> None:
        self.count = 0
        self._target = rig.sandbox.deployment.batch_settler
        proxy.fail_always("eth_call", self._see)

    async def _see(self, request: Request, forward: Forward) -> Answer | None:
        call = request["params"][0]
        is_batch = call["data"].startswith("0x" + SETTLE.selector.hex())
        self.count += is_batch and call["to"] == self._target
        return await forward()


@pytest.fixture
def simulations(rig: SettlementRig, proxy: FaultProxy) -> Simulations:
    return Simulations(rig, proxy)


async def take_away(trader: Trader) -> None:
    """Move all collateral of a trader away after the index has read the chain."""
    await trader.rig.begin()
    sandbox, deployment = trader.rig.sandbox, trader.rig.sandbox.deployment
    units = await sandbox.reader.collateral_units(trader.wallet)
    sink = sandbox.account(AccountRole.ADMIN).address
    await trader.execute(deployment.collateral, Transfer(sink, units).encode())


async def gas_rows(rig: SettlementRig) -> dict[Address, int]:
    async with rig.database.reading() as tx:
        rows = await tx.all(
            sa.select(wallet_gas).where(wallet_gas.c.day == day_of(rig.clock.now_ms()))
        )
    return {Address(row.wallet): row.gas for row in rows}


async def test_trades_of_plain_accounts_that_cover_them_are_mined_without_a_simulation(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    trade_ids = await matched(market, traders)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * len(trade_ids)
    assert (simulations.count, await ids_sent(rig)) == (0, [together(trade_ids[0])])
    assert await gas_rows(rig) == {}
    await rig.check_ledger()


async def test_only_the_trades_of_wallets_that_moved_their_collateral_away_fail(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    """Two of four takers pay nothing any more; from then on they are simulated."""
    alice, bob, carol = traders
    dave, erin = await rig.trader(3), await rig.trader(4)
    await rig.see()
    takers = [bob, dave, carol, erin]
    await alice.sell(market, 40, 4 * UNIT)
    trade_ids = [
        trade_id for taker in takers for trade_id in (await taker.buy(market, 40, UNIT)).trade_ids
    ]
    for taker in (dave, erin):
        await take_away(taker)
    fills = await rig.fill_count()
    await rig.act()
    assert (simulations.count, await ids_sent(rig)) == (0, [together(trade_ids[0])])
    for _ in range(3):
        await rig.sandbox.mine()
        await rig.see()
        await rig.watch()
    assert await rig.statuses(trade_ids) == [CONFIRMED, TradeStatus.MATCHED] * 2
    assert await rig.fill_count() == fills + 4
    await rig.act()
    assert await gas_rows(rig) == {
        NOBODY: 2 * MATCH_GAS,
        **dict.fromkeys([alice.wallet, dave.wallet, erin.wallet], 0),
    }
    await rig.settle(step_ms=60_000)
    assert await rig.statuses(trade_ids) == [CONFIRMED, FAILED] * 2
    (batch,) = await rig.sent()
    assert batch.status is TxStatus.CONFIRMED, "the tries of the failed trades were simulated"
    await rig.check_ledger()


async def test_wallets_of_a_failed_match_are_simulated_from_then_on(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    """A restart does not forget them, and the innocent side is simulated too; another day it ends."""
    alice, bob, carol = traders
    dave = await rig.trader(3)
    await rig.see()
    await matched(market, [alice, carol, dave], 2)
    await take_away(dave)
    await rig.settle(step_ms=60_000)
    (returned,) = rig.engine.state.live_orders
    await alice.cancel_on_chain((await rig.order_row(returned)).signed)
    await rig.see()
    simulations.count = 0
    innocent = await matched(market, [carol, bob], 2)
    await rig.settle()
    assert (await rig.statuses(innocent), simulations.count) == ([CONFIRMED] * 2, 0)
    await rig.restart()
    beside_failed = await matched(market, [alice, bob], 2)
    await rig.settle()
    assert (await rig.statuses(beside_failed), simulations.count) == ([CONFIRMED] * 2, 1)
    rig.clock.move(2 * DAY_MS)
    later = await matched(market, [alice, bob], 2)
    await rig.settle()
    assert (await rig.statuses(later), simulations.count) == ([CONFIRMED] * 2, 1)
    await rig.check_ledger()


async def test_what_failed_matches_may_cost_in_a_day_is_bounded(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    rig.change(unsimulated_gas_per_day_max=MATCH_GAS)
    alice, bob, carol = traders
    dave = await rig.trader(3)
    await rig.see()
    await matched(market, [alice, bob, dave], 2)
    await take_away(dave)
    await rig.act()
    assert simulations.count == 0
    counted = GAS.labels(BATCH)._value.get()
    await rig.settle(step_ms=60_000)
    assert GAS.labels(BATCH)._value.get() == counted + MATCH_GAS
    await rig.restart()
    assert (await gas_rows(rig))[NOBODY] == MATCH_GAS
    simulations.count = 0
    trade_ids = await matched(market, [carol, bob], 2)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert simulations.count > 0, "the budget of the day is spent"


async def to_a_safe(rig: SettlementRig, market: SandboxMarket, _: Trader) -> Trader:
    safe = await rig.safe_trader(5, market)
    await rig.see()
    return safe


async def with_code(rig: SettlementRig, _: SandboxMarket, taker: Trader) -> Trader:
    await rig.sandbox.rpc.send("anvil_setCode", taker.wallet, DELEGATION)
    return taker


@pytest.mark.parametrize("change", [to_a_safe, with_code])
async def test_trades_of_other_wallets_are_simulated(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    simulations: Simulations,
    change: Any,
) -> None:
    alice, bob, _ = traders
    taker = await change(rig, market, bob)
    trade_ids = await matched(market, [alice, taker], 2)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert simulations.count > 0


async def test_trades_of_other_wallets_do_not_delay_those_that_are_covered(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    alice, bob, _ = traders
    safe = await rig.safe_trader(5, market)
    await rig.see()
    mixed = await matched(market, [alice, bob, safe], 4)
    await rig.settle()
    assert await rig.statuses(mixed) == [CONFIRMED] * 4
    assert await ids_sent(rig) == [together(mixed[0]), together(mixed[1])]
    assert simulations.count == 1
    await rig.check_ledger()


async def test_trades_whose_tokens_come_from_each_other_are_simulated(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    trade_ids = await resold(rig, market, traders)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert simulations.count > 0
    await rig.check_ledger()


async def test_trades_are_simulated_while_the_index_is_behind(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    trade_ids = await matched(market, traders)
    await rig.begin()
    await rig.sandbox.mine(rig.options.unsimulated_lag_blocks_max + 1)
    await rig.act()
    assert simulations.count == 1
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * len(trade_ids)


async def test_no_batch_is_sent_to_a_paused_exchange(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    exchange, admin = rig.sandbox.deployment.exchange, rig.sandbox.account(AccountRole.ADMIN)
    trade_ids = await matched(market, traders)
    await rig.sandbox.call(admin, exchange, PAUSE.encode())
    with pytest.raises(ExchangeClosed):
        await rig.act()
    assert await rig.sent() == []
    assert await gas_rows(rig) == {}
    await rig.sandbox.call(admin, exchange, UNPAUSE.encode())
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * len(trade_ids)


async def test_a_node_that_does_not_show_code_has_the_batch_simulated(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    simulations: Simulations,
    proxy: FaultProxy,
) -> None:
    proxy.fail("eth_getCode", refuse("method not found", -32601))
    trade_ids = await matched(market, traders)
    await rig.act()
    assert simulations.count == 1
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * len(trade_ids)


async def test_an_account_is_asked_for_its_code_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], simulations: Simulations
) -> None:
    alice, bob, _ = traders
    await matched(market, [alice, bob], 2)
    await rig.settle()
    await rig.sandbox.rpc.send("anvil_setCode", bob.wallet, DELEGATION)
    rig.clock.move(KNOWN_MS)
    trade_ids = await matched(market, [alice, bob], 2)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert simulations.count > 0

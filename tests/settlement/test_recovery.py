"""Restarts and kills of settlement, and a second one beside it: every trade settles exactly once."""

import random
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.rigs.fault_proxy import Answer, Fault, FaultProxy, Forward, Request, refuse
from tests.rigs.killing import Killer
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.chain import NonceContended
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.settlement import (
    Settlement,
    failed_settlement,
    named_settlement,
    waiting_settlement,
)
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.match_call import match_call
from foretell.settlement.settle import run_once
from foretell.settlement.stored import BY_ANOTHER, Progress, load_matched, record
from foretell.store.outbox.settlements import name_settlements
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
REVERTED: Final = 3
"""The code of a node's answer to a call that reverts."""


async def test_a_restart_at_any_step_loses_no_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    await alice.sell(market, 40, 30 * UNIT)
    trade_ids: list[str] = []
    for trader in (bob, carol, bob):
        trade_ids += (await trader.buy(market, 40, 10 * UNIT)).trade_ids
        await rig.restart()
        await rig.projection.catch_up()
        await run_once(rig.context)
        await rig.restart()
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 3
    assert await rig.fill_count() == 6
    await rig.check_ledger()


def sent_by_another(rig: SettlementRig, named: Settlement, earlier_calls: int) -> Fault:
    """Another process sends a named trade before the node answers a call; those before it revert."""
    answers = 0
    sender = Sender(
        rig.sandbox.rpc,
        rig.operator_key,
        TxOutbox(rig.database, SETTLEMENT),
        SenderOptions(SANDBOX_CHAIN_ID, confirmations=1),
        rig.clock.now_ms,
    )

    async def fault(request: Request, forward: Forward) -> Answer | None:
        nonlocal answers
        answers += 1
        if answers <= earlier_calls:
            return await refuse("execution reverted", REVERTED)(request, forward)
        if answers == earlier_calls + 1:
            (trade,) = await load_matched(rig.context, [named])
            await sender.send(match_call(trade, named.tx_id or ""))
        return await forward()

    return fault


@pytest.mark.parametrize("earlier_calls", [0, 1])
async def test_a_trade_that_another_process_sends_during_its_simulation_is_not_taken_from_it(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    earlier_calls: int,
) -> None:
    """The orders are filled then, so the simulation reverts, and the exchange says that they are over."""
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    await rig.begin()
    named = named_settlement(Settlement(trade_id))
    async with rig.database.writing() as tx:
        assert await name_settlements(tx, [named])
    proxy.fail_always("eth_call", sent_by_another(rig, named, earlier_calls))
    with capture_logs() as logs:
        await run_once(rig.context)
    proxy.heal()
    assert tuple(await rig.settlement(trade_id)) == named
    assert [each["event"] for each in logs].count(BY_ANOTHER) == earlier_calls
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert [each.tx_id for each in await rig.sent()] == [named.tx_id]
    await rig.check_ledger()


async def test_a_trade_that_another_process_defers_during_its_simulation_is_not_sent_under_its_old_name(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    """Its next transaction has another name, and the exchange may accept both where the orders have more to fill."""
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    await rig.begin()

    async def deferred(_request: Request, forward: Forward) -> Answer | None:
        read = named_settlement(Settlement(trade_id))
        failed = failed_settlement(read, "InvalidNonce", rig.clock.now_ms(), rig.options)
        assert await record(rig.context, [Progress(read, failed)])
        return await forward()

    proxy.fail("eth_call", deferred)
    with pytest.raises(NonceContended):
        await run_once(rig.context)
    assert await rig.sent() == []
    await rig.settle()
    assert [each.tx_id for each in await rig.sent()] == [f"settle:{trade_id}:2"]
    assert await rig.fill_count() == 2
    await rig.check_ledger()


async def test_no_progress_is_stored_of_trades_of_which_another_process_has_named_one(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 20 * UNIT)
    bought = [await bob.buy(market, 40, 10 * UNIT, salt=salt) for salt in ("900", "901")]
    read = [Settlement(each.trade_ids[0]) for each in bought]
    await rig.projection.catch_up()
    named = named_settlement(read[1])
    async with rig.database.writing() as tx:
        assert await name_settlements(tx, [named])
    steps = [
        Progress(each, waiting_settlement(each, rig.clock.now_ms(), rig.options)) for each in read
    ]
    assert not await record(rig.context, steps)
    assert await rig.settlement(read[0].trade_id) is None
    assert tuple(await rig.settlement(named.trade_id)) == named
    assert await record(rig.context, steps[:1])
    assert await record(rig.context, [Progress(named, steps[1].after)])


async def attempt(rig: SettlementRig) -> None:
    """Settle as far as possible; the next process continues after a node that does not answer."""
    try:
        await rig.settle()
    except (ForetellError, AssertionError):
        return


@pytest.mark.case("D-02")
@settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_every_trade_settles_exactly_once_when_the_process_is_killed_at_any_time(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy, seed: int
) -> None:
    rng = random.Random(seed)
    alice, bob, carol = traders
    fills_before, sent_before = await rig.fill_count(), len(await rig.sent())
    trade_ids: list[str] = []
    await alice.sell(market, 40, 2 * UNIT)
    for trader in (bob, carol):
        trade_ids += (await trader.buy(market, 40, UNIT)).trade_ids
        for _ in range(rng.randint(0, 2)):
            killer = Killer(proxy, rng.randint(1, 25), is_received=rng.random() < 0.5)
            await killer.kill(rig, attempt(rig))
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert await rig.fill_count() == fills_before + 4
    assert len(await rig.sent()) == sent_before + 2
    await rig.check_ledger()

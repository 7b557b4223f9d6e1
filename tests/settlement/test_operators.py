"""Several accounts that settle."""

import random
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.fault_proxy import FaultProxy
from tests.rigs.killing import Killer
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_batches import CONFIRMED, ids_sent, matched, together
from tests.settlement.test_recovery import attempt

from foretell.domain.contracts.calldata import ADD_OPERATOR
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.settlement import is_batch
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.grants import GRANTED_MS

pytestmark = pytest.mark.anyio

FURTHER: Final = 7
"""The number of the sandbox's account that settles beside the first one."""
COIN_WEI: Final = 10**20
REMOVE_OPERATOR: Final = contract_function("removeOperator(address)")


async def grant(rig: SettlementRig) -> None:
    """Make the further account an operator."""
    admin = rig.sandbox.account(AccountRole.ADMIN)
    added = ADD_OPERATOR.encode(further(rig))
    await rig.sandbox.call(admin, rig.sandbox.deployment.exchange, added)


async def dismiss(rig: SettlementRig) -> None:
    """Have the further account be no operator any more."""
    admin = rig.sandbox.account(AccountRole.ADMIN)
    removed = REMOVE_OPERATOR.encode(further(rig))
    await rig.sandbox.call(admin, rig.sandbox.deployment.exchange, removed)


async def attempts(rig: SettlementRig, trade_ids: list[str]) -> set[int]:
    """Return how many tries of these trades have failed."""
    return {(await rig.settlement(each)).attempts for each in trade_ids}


def further(rig: SettlementRig) -> Address:
    return rig.sandbox.trader(FURTHER).address


def first(rig: SettlementRig) -> Address:
    return rig.context.operator.address


async def senders(rig: SettlementRig) -> list[Address]:
    """Return the accounts of all transactions, in the order in which these were made."""
    sent = sorted(await rig.sent(), key=lambda each: each.created_at_ms)
    return [each.sender for each in sent]


async def empty(rig: SettlementRig, account: Address, wei: int = 0) -> None:
    await rig.sandbox.rpc.send("anvil_setBalance", account, hex(wei))


@pytest.fixture
async def rig(rig: SettlementRig) -> SettlementRig:
    """The rig with batches and two accounts."""
    rig.has_batches = True
    rig.further_operators = (rig.sandbox.trader(FURTHER),)
    await rig.restart()
    rig.change(batch_trades_max=2)
    return rig


async def test_batches_are_spread_over_the_accounts(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    await grant(rig)
    trade_ids = await matched(market, traders, 8)
    fills_before = await rig.fill_count()
    await rig.automine(is_on=False)
    await rig.act()
    assert sorted(await senders(rig)) == sorted([first(rig), further(rig)] * 2)
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 8
    assert await rig.fill_count() == fills_before + 2 * 8
    assert {each.status for each in await rig.sent()} == {TxStatus.CONFIRMED}
    await rig.check_ledger()


async def test_an_account_that_is_no_operator_gets_no_batch_until_it_is_one_nor_after_its_dismissal(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await matched(market, traders, 4)
    await rig.settle()
    assert set(await senders(rig)) == {first(rig)}
    await grant(rig)
    trade_ids += await matched(market, traders, 4)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 8
    assert set(await senders(rig)) == {first(rig), further(rig)}
    await dismiss(rig)
    rig.clock.move(GRANTED_MS)
    known = {each.tx_id for each in await rig.sent()}
    trade_ids += (later := await matched(market, traders, 4))
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 12
    assert {each.sender for each in await rig.sent() if each.tx_id not in known} == {first(rig)}
    assert {each.status for each in await rig.sent()} == {TxStatus.CONFIRMED}
    assert await attempts(rig, later) == {0}
    await rig.check_ledger()


@pytest.mark.parametrize("is_simulated", [True, False])
async def test_a_batch_of_an_account_that_was_just_dismissed_costs_its_trades_no_try(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    capsys: pytest.CaptureFixture[str],
    *,
    is_simulated: bool,
) -> None:
    """Its leave is known and over: the simulation shows that, or the batch is mined in vain."""
    if is_simulated:
        rig.change(unsimulated_gas_per_day_max=0)
    await grant(rig)
    await matched(market, traders, 4)
    await rig.settle()
    assert set(await senders(rig)) == {first(rig), further(rig)}
    await dismiss(rig)
    known = {each.tx_id for each in await rig.sent()}
    capsys.readouterr()
    later = await matched(market, traders, 4)
    await rig.settle()
    assert await rig.statuses(later) == [CONFIRMED] * 4
    assert await attempts(rig, later) == {0}
    sent = [each for each in await rig.sent() if each.tx_id not in known]
    assert {each.sender for each in sent if each.status is TxStatus.CONFIRMED} == {first(rig)}
    in_vain = [each.sender for each in sent if each.status is TxStatus.FAILED]
    assert in_vain == ([] if is_simulated else [further(rig)])
    assert all(is_batch(each.tx_id) for each in sent)
    logged = capsys.readouterr().out
    assert logged.count("account is no operator") == 1
    assert "operator_keys" in logged
    await rig.check_ledger()


@pytest.mark.parametrize("is_first", [True, False])
async def test_an_account_without_coin_stops_only_itself(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], *, is_first: bool
) -> None:
    await grant(rig)
    poor, rich = (first(rig), further(rig))[:: 1 if is_first else -1]
    await empty(rig, poor)
    trade_ids = await matched(market, traders, 6)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 6
    assert set(await senders(rig)) == {rich}
    await empty(rig, poor, COIN_WEI)
    await rig.check_ledger()


async def test_a_trade_that_only_the_account_without_coin_may_carry_holds_up_no_batch(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    await grant(rig)
    await empty(rig, first(rig))
    (alone_id,) = await matched(market, traders, 1)
    await rig.begin()
    await rig.act()
    waiting = await rig.settlement(alone_id)
    assert (waiting.attempts, waiting.refusals) == (0, 1)
    others = await matched(market, traders, 2)
    for _ in range(3):
        await rig.act()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await rig.see()
    assert await rig.statuses(others) == [CONFIRMED] * 2
    assert set(await senders(rig)) == {further(rig)}
    await empty(rig, first(rig), COIN_WEI)
    rig.clock.move(60_000)
    await rig.settle()
    assert await rig.statuses([alone_id]) == [CONFIRMED]
    await rig.check_ledger()


async def test_a_trade_that_needs_one_on_its_way_waits_for_it_and_no_try_is_counted(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    await grant(rig)
    alice, bob, carol = traders
    poor = await rig.trader(6)
    await rig.see()
    await alice.sell(market, 40, 11 * UNIT)
    bought = [await poor.buy(market, 40, 10 * UNIT), await carol.buy(market, 40, UNIT)]
    await bob.buy(market, 50, 11 * UNIT)
    sold = [await poor.sell(market, 50, 10 * UNIT), await carol.sell(market, 50, UNIT)]
    early, late = ([id_ for one in each for id_ in one.trade_ids] for each in (bought, sold))
    await rig.automine(is_on=False)
    await rig.act()
    assert (await ids_sent(rig))[0] == together(early[0])
    waiting = await rig.settlement(late[0])
    assert (waiting.tx_id, waiting.attempts) == (None, 0)
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses([*early, *late]) == [CONFIRMED] * 4
    attempts = {(await rig.settlement(each)).attempts for each in (*early, *late)}
    assert attempts == {0}
    await rig.check_ledger()


async def test_transactions_of_the_other_account_are_not_those_of_a_former_key(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    capsys: pytest.CaptureFixture[str],
) -> None:
    await grant(rig)
    await matched(market, traders, 4)
    await rig.automine(is_on=False)
    await rig.act()
    assert set(await senders(rig)) == {first(rig), further(rig)}
    accounts = [first(rig), further(rig)]
    for sender in (rig.context.operator, *rig.context.further_operators):
        await sender.name_former_keys(accounts)
    assert "former key" not in capsys.readouterr().out
    await rig.context.operator.name_former_keys()
    assert "former key" in capsys.readouterr().out


@settings(
    max_examples=max(4, settings().max_examples // 4),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_every_trade_settles_once_by_several_accounts_when_the_process_is_killed_at_any_time(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy, seed: int
) -> None:
    await grant(rig)
    rng = random.Random(seed)
    fills_before = await rig.fill_count()
    trade_ids: list[str] = []
    for _ in range(2):
        trade_ids += await matched(market, traders, rng.randint(2, 6))
        for _ in range(rng.randint(0, 2)):
            killer = Killer(proxy, rng.randint(1, 35), is_received=rng.random() < 0.5)
            await killer.kill(rig, attempt(rig))
    await rig.settle()
    assert set(await rig.statuses(trade_ids)) == {CONFIRMED}
    assert await rig.fill_count() == fills_before + 2 * len(trade_ids)
    await rig.check_ledger()

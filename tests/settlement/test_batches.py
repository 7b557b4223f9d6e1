"""Trades that settle together, and those of them that do not."""

import asyncio
import contextlib
import random
from typing import Any, Final

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.fault_proxy import (
    Answer,
    Fault,
    FaultProxy,
    Forward,
    Request,
    honest,
    lose_request,
    refuse,
)
from tests.rigs.killing import Killer
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_recovery import attempt
from tests.settlement.test_settle import Crowd
from tests.settlement.test_two_faced import a_two_faced_trader, closed_by_the_chain

from foretell.domain.contracts.calldata import Approve
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.rlp import decode_list
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.settlement import is_batch
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.batches import TOGETHER_MAX
from foretell.settlement.settle import run_once
from foretell.store.tables import wallet_gas

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
TRADES: Final = 4
OVERLAP_S: Final = 30.0
"""How long a request waits for the one beside it: less than it may take."""


@pytest.fixture
async def rig(rig: SettlementRig) -> SettlementRig:
    """The rig on a deployment with the contract for batches."""
    rig.has_batches = True
    await rig.restart()
    return rig


async def matched(market: SandboxMarket, traders: list[Trader], count: int = TRADES) -> list[str]:
    """Match this many trades of one unit, each with a taker of its own; return their ids."""
    alice, *takers = traders
    await alice.sell(market, 40, count * UNIT)
    placed = [await takers[n % len(takers)].buy(market, 40, UNIT) for n in range(count)]
    return [trade_id for placement in placed for trade_id in placement.trade_ids]


async def ids_sent(rig: SettlementRig) -> list[str]:
    return [sent.tx_id for sent in await rig.sent()]


def alone(trade_id: str, number: int = 1) -> str:
    return f"settle:{trade_id}:{number}"


def together(trade_id: str) -> str:
    return f"batch:{trade_id}:1"


async def test_the_next_batches_are_simulated_while_the_node_takes_those_before(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    """The node answers the first broadcast and the simulation after it only when it has both."""
    rig.change(batch_trades_max=2, unsimulated_gas_per_day_max=0)
    trade_ids = await matched(market, traders, 2 * (TOGETHER_MAX + 1))
    await rig.begin()
    is_broadcast, is_simulated = asyncio.Event(), asyncio.Event()
    meetings: list[bool] = []

    def meet(arrived: asyncio.Event, other: asyncio.Event) -> Fault:
        async def fault(_request: Request, forward: Forward) -> Answer | None:
            arrived.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(other.wait(), OVERLAP_S)
            meetings.append(other.is_set())
            return await forward()

        return fault

    proxy.fail("eth_sendRawTransaction", meet(is_broadcast, is_simulated))
    proxy.fail("eth_call", *[honest] * TOGETHER_MAX, meet(is_simulated, is_broadcast))
    await rig.act()
    assert meetings == [True, True]
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * len(trade_ids)
    assert await ids_sent(rig) == [together(each) for each in trade_ids[::2]]
    await rig.check_ledger()


async def test_trades_settle_in_one_transaction(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await matched(market, traders)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    (sent,) = await rig.sent()
    assert sent.tx_id == together(trade_ids[0])
    assert sent.target == rig.sandbox.deployment.batch_settler
    assert {trade.tx_hash for trade in await rig.trades(trade_ids)} == {sent.mined_hash}
    await rig.check_ledger()


async def test_each_exchange_has_batches_of_its_own(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    event = await rig.open_event()
    exchange = rig.sandbox.deployment.neg_risk_exchange
    for trader in traders:
        await rig.sandbox.allow(trader.account, exchange)
    await rig.see()
    trade_ids = await matched(market, traders, 2)
    for number, trader in enumerate(traders[1:]):
        await traders[0].buy(event, 40 + number, UNIT)
        trade_ids += (await trader.buy(event, 60 - number, UNIT, is_yes=False)).trade_ids
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 4
    assert await ids_sent(rig) == [together(trade_ids[0]), together(trade_ids[2])]
    assert await rig.sandbox.reader.collateral_units(exchange) == 0


async def resold(rig: SettlementRig, market: SandboxMarket, traders: list[Trader]) -> list[str]:
    """Match a trade, and another one that sells the tokens of the first; return their ids."""
    alice, bob, _ = traders
    poor = await rig.trader(6)
    await rig.see()
    await alice.sell(market, 40, 10 * UNIT)
    bought = await poor.buy(market, 40, 10 * UNIT)
    await bob.buy(market, 50, 10 * UNIT)
    sold = await poor.sell(market, 50, 10 * UNIT)
    return [*bought.trade_ids, *sold.trade_ids]


async def test_tokens_bought_in_a_batch_are_sold_in_it(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await resold(rig, market, traders)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert len(await rig.sent()) == 1
    await rig.check_ledger()


async def test_a_trade_that_would_fail_leaves_the_batch_before_it_is_sent(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await matched(market, traders)
    deployment = rig.sandbox.deployment
    await traders[1].execute(deployment.collateral, Approve(deployment.exchange, 0).encode())
    await rig.act()
    failed = await rig.settlement(trade_ids[0])
    assert (failed.attempts, failed.failure) == (1, "InsufficientAllowance")
    assert await ids_sent(rig) == [together(trade_ids[1])]
    await rig.sandbox.allow(traders[1].account, deployment.exchange)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [
        together(trade_ids[1]),
        alone(trade_ids[0], 2),
        alone(trade_ids[2]),
    ]
    await rig.check_ledger()


@pytest.mark.usefixtures("earlier_exchange")
async def test_h1_a_two_faced_wallet_fails_alone_within_a_batch_and_is_blamed_by_itself(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(unsimulated_gas_per_day_max=0)
    liar = await a_two_faced_trader(rig, market)
    trade_ids = await matched(market, traders, 2)
    await traders[0].sell(market, 40, UNIT)
    lying = await liar.buy(market, 40, 2 * UNIT)
    trade_ids += lying.trade_ids
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED, CONFIRMED, TradeStatus.FAILED]
    assert [(sent.tx_id, sent.status) for sent in await rig.sent()] == [
        (together(trade_ids[0]), TxStatus.CONFIRMED),
        (alone(trade_ids[2], 2), TxStatus.FAILED),
    ]
    assert await closed_by_the_chain(rig, lying.order_id)
    await rig.check_ledger()


async def fail_when_mined(rig: SettlementRig, trader: Trader) -> None:
    """Take a trader's allowance away in front of what settlement has sent, and mine it."""
    deployment = rig.sandbox.deployment
    await trader.overtake(deployment.collateral, Approve(deployment.exchange, 0).encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.sandbox.allow(trader.account, deployment.exchange)


async def test_a_trade_that_failed_when_mined_goes_on_alone_once_the_index_agrees(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await matched(market, traders, 2)
    await rig.automine(is_on=False)
    await rig.act()
    await fail_when_mined(rig, traders[2])
    for _ in range(3):
        await rig.act()
    assert (await rig.settlement(trade_ids[1])).tx_id == together(trade_ids[0])
    await rig.see()
    await rig.act()
    failed = await rig.settlement(trade_ids[1])
    assert (failed.tx_id, failed.attempts) == (alone(trade_ids[1], 2), 1)
    assert failed.failure == "InsufficientAllowance"
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert await ids_sent(rig) == [together(trade_ids[0]), alone(trade_ids[1], 2)]
    await rig.check_ledger()


async def without_logs(_: Request, forward: Forward) -> Answer | None:
    """A node whose receipts of transactions have no logs."""
    answer = await forward()
    answer["result"]["logs"] = []
    return answer


@pytest.mark.parametrize("fault", [without_logs, refuse("try again later", -32005)])
async def test_a_trade_of_a_batch_waits_while_the_node_does_not_say_that_it_failed(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    fault: Any,
) -> None:
    trade_ids = await matched(market, traders, 2)
    await rig.automine(is_on=False)
    await rig.act()
    await fail_when_mined(rig, traders[2])
    await rig.act()
    await rig.see()
    proxy.fail_always("eth_getTransactionReceipt", fault)
    for _ in range(3):
        await attempt_once(rig)
    assert (await rig.settlement(trade_ids[1])).tx_id == together(trade_ids[0])
    proxy.heal()
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert await rig.fill_count() == 4
    await rig.check_ledger()


async def attempt_once(rig: SettlementRig) -> None:
    await rig.projection.catch_up()
    await run_once(rig.context)


async def test_a_batch_that_was_named_and_not_sent_is_sent_after_a_restart(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    trade_ids = await matched(market, traders)
    await rig.begin()
    proxy.fail_always("eth_getTransactionCount", lose_request)
    with pytest.raises(ChainUnavailable):
        await rig.act()
    assert [(await rig.settlement(each)).tx_id for each in trade_ids] == [
        together(trade_ids[0])
    ] * TRADES
    assert await rig.sent() == []
    proxy.heal()
    await rig.restart()
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [together(trade_ids[0])]
    await rig.check_ledger()


async def test_trades_of_a_batch_that_was_not_sent_go_alone_in_a_deployment_without_batches(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    trade_ids = await matched(market, traders)
    await rig.begin()
    proxy.fail_always("eth_getTransactionCount", lose_request)
    with pytest.raises(ChainUnavailable):
        await rig.act()
    proxy.heal()
    rig.has_batches = False
    await rig.restart()
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [alone(each) for each in trade_ids]
    await rig.check_ledger()


async def test_a_batch_that_the_node_refuses_is_tried_again_without_counting(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    trade_ids = await matched(market, traders)
    await rig.begin()
    proxy.fail("eth_getTransactionCount", refuse("daily quota exceeded", -32005))
    await rig.act()
    waiting = await rig.settlement(trade_ids[-1])
    assert (waiting.tx_id, waiting.attempts, waiting.refusals) == (None, 0, 1)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [together(trade_ids[0])]
    await rig.check_ledger()


async def test_a_batch_whose_nonce_another_transaction_used_loses_no_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await matched(market, traders)
    await rig.automine(is_on=False)
    await rig.act()
    await rig.sandbox.rpc.send("anvil_dropAllTransactions")
    operator = rig.context.operator.address
    call = {"from": operator, "to": operator, "value": "0x1", "gas": hex(21_000)}
    await rig.sandbox.rpc.send("eth_sendTransaction", call)
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [together(trade_ids[0]), *(alone(each, 2) for each in trade_ids)]
    await rig.check_ledger()


class CappedFees:
    """A node that refuses raw transactions whose gas times their highest price is above a part of the first one's."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.refused: set[str] = set()
        self._cap_wei = 0
        proxy.fail_always("eth_sendRawTransaction", self._look)

    async def _look(self, request: Request, forward: Forward) -> Answer | None:
        raw = bytes.fromhex(request["params"][0][2:])
        _, _, _, price, gas, *_ = decode_list(raw[1:])
        fee_wei = int.from_bytes(price, "big") * int.from_bytes(gas, "big")
        self._cap_wei = self._cap_wei or fee_wei * 9 // 10
        if fee_wei <= self._cap_wei:
            return await forward()
        self.refused.add(request["params"][0])
        fee, cap = fee_wei / 10**18, self._cap_wei / 10**18
        words = f"tx fee ({fee:.2f} ether) exceeds the configured cap ({cap:.2f} ether)"
        return await refuse(words)(request, forward)


async def test_a_batch_whose_fee_the_node_caps_goes_again_in_smaller_ones_and_no_try_is_counted(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = CappedFees(proxy)
    capsys.readouterr()
    trade_ids = await matched(market, traders, 20)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 20
    assert {(await rig.settlement(each)).attempts for each in trade_ids} == {0}
    sent = await rig.sent()
    assert all(is_batch(each.tx_id) for each in sent)
    assert [each.status for each in sent].count(TxStatus.CANCELED) == len(node.refused) == 1
    assert capsys.readouterr().out.count("--rpc.txfeecap 0") == 1
    await rig.check_ledger()
    async with rig.database.reading() as tx:
        assert await tx.all(sa.select(wallet_gas)) == []
    trade_ids += await matched(market, traders, 20)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 40
    assert len(node.refused) == 1


async def test_batches_are_smaller_while_one_that_the_node_refused_for_its_fee_is_on_its_way(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    node = CappedFees(proxy)
    trade_ids = await matched(market, traders, 20)
    await rig.automine(is_on=False)
    await rig.act()
    trade_ids += await matched(market, traders, 20)
    rig.clock.move(1_000)
    await rig.act()
    first, *later = await rig.sent()
    assert (first.is_given_up, len(node.refused), len(later)) == (True, 1, 3)
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 40
    assert {(await rig.settlement(each)).attempts for each in trade_ids} == {0}
    await rig.check_ledger()


async def test_a_batch_whose_block_a_reorg_removed_settles_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.confirmations = 4
    await rig.restart()
    trade_ids = await matched(market, traders)
    before = await rig.sandbox.rpc.send("evm_snapshot")
    await rig.act()
    await rig.see()
    await rig.act()
    assert await rig.statuses(trade_ids) == [TradeStatus.MINED] * TRADES
    assert await rig.sandbox.rpc.send("evm_revert", before)
    await rig.automine(is_on=False)
    await rig.sandbox.mine(2)
    await rig.see()
    assert await rig.statuses(trade_ids) == [TradeStatus.RETRYING] * TRADES
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [together(trade_ids[0])]
    await rig.check_ledger()


async def test_a_batch_takes_one_place_of_those_on_their_way(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(in_flight_max=4, batch_trades_max=2, batched_per_pass_max=10)
    trade_ids = await matched(market, traders, 10)
    await rig.automine(is_on=False)
    for _ in range(3):
        await rig.act()
    assert await ids_sent(rig) == [together(trade_ids[number]) for number in (0, 2, 4, 6)]
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 10
    await rig.check_ledger()


async def test_batches_of_one_pass_are_simulated_and_stored_together(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    rig.change(batch_trades_max=2, unsimulated_gas_per_day_max=0)
    trade_ids = await matched(market, traders, 6)
    proxy.asked.clear()
    await rig.act()
    assert await ids_sent(rig) == [together(trade_ids[number]) for number in (0, 2, 4)]
    assert (proxy.asked["eth_call"], proxy.asked["eth_feeHistory"]) == (3, 1)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 6
    await rig.check_ledger()


async def test_tokens_bought_in_one_batch_are_sold_in_the_next_of_the_same_pass(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(batch_trades_max=2)
    alice, bob, carol = traders
    poor = await rig.trader(6)
    await rig.see()
    await alice.sell(market, 40, 11 * UNIT)
    first = [await poor.buy(market, 40, 10 * UNIT), await carol.buy(market, 40, UNIT)]
    await bob.buy(market, 50, 11 * UNIT)
    second = [await poor.sell(market, 50, 10 * UNIT), await carol.sell(market, 50, UNIT)]
    trade_ids = [trade_id for each in (*first, *second) for trade_id in each.trade_ids]
    await rig.act()
    assert await ids_sent(rig) == [together(trade_ids[0]), together(trade_ids[2])]
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert {each.attempts for each in [await rig.settlement(one) for one in trade_ids]} == {0}
    await rig.check_ledger()


async def test_without_the_exchanges_leave_for_batches_trades_go_alone(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    sandbox = rig.sandbox
    remove = contract_function("removeOperator(address)").encode(sandbox.deployment.batch_settler)
    admin = sandbox.account(AccountRole.ADMIN)
    await sandbox.call(admin, sandbox.deployment.exchange, remove)
    trade_ids = await matched(market, traders)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [alone(each) for each in trade_ids]


async def test_where_the_contract_answers_nothing_trades_go_alone(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    await rig.sandbox.rpc.send("anvil_setCode", rig.sandbox.deployment.batch_settler, "0x")
    trade_ids = await matched(market, traders)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * TRADES
    assert await ids_sent(rig) == [alone(each) for each in trade_ids]


async def test_an_order_that_takes_and_then_makes_is_settled_by_its_own_trades(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """A trade that fails is not taken for settled because its taker's order made another one."""
    alice, bob, carol = traders
    await alice.sell(market, 40, UNIT)
    taken = await bob.buy(market, 40, 2 * UNIT)
    made = await carol.sell(market, 40, UNIT)
    trade_ids = [*taken.trade_ids, *made.trade_ids]
    await rig.automine(is_on=False)
    await rig.act()
    assert await ids_sent(rig) == [together(trade_ids[0])]
    deployment = rig.sandbox.deployment
    approval = contract_function("setApprovalForAll(address,bool)")
    revoked, restored = (approval.encode(deployment.exchange, is_on) for is_on in (False, True))
    await alice.overtake(deployment.conditional_tokens, revoked)
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await alice.execute(deployment.conditional_tokens, restored)
    await rig.act()
    await rig.see()
    assert await rig.statuses(trade_ids) == [TradeStatus.MATCHED, CONFIRMED]
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert (await rig.order_row(taken.order_id)).status is OrderStatus.MATCHED
    await rig.check_ledger()


@pytest.mark.case("D-02")
@settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_every_trade_of_a_batch_settles_once_when_the_process_is_killed_at_any_time(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy, seed: int
) -> None:
    rng = random.Random(seed)
    rig.change(batch_trades_max=rng.choice([2, 20]))
    fills_before = await rig.fill_count()
    trade_ids: list[str] = []
    for _ in range(2):
        trade_ids += await matched(market, traders, rng.randint(1, 5))
        for _ in range(rng.randint(0, 2)):
            killer = Killer(proxy, rng.randint(1, 25), is_received=rng.random() < 0.5)
            await killer.kill(rig, attempt(rig))
    await rig.settle()
    assert set(await rig.statuses(trade_ids)) == {CONFIRMED}
    assert await rig.fill_count() == fills_before + 2 * len(trade_ids)
    await rig.check_ledger()


@settings(
    max_examples=max(4, settings().max_examples // 5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_batches_settle_whatever_the_engine_matches(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], seed: int
) -> None:
    rig.change(batch_trades_max=random.Random(seed).choice([2, 3, 20]))
    crowd = Crowd(market, traders, seed)
    for _ in range(30):
        await crowd.place()
    await rig.settle()
    assert crowd.trade_ids
    assert set(await rig.statuses(crowd.trade_ids)) == {CONFIRMED}
    await rig.check_ledger()

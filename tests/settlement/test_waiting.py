"""Trades that wait: for an exchange that is closed, and for nobody else's failures."""

import asyncio
import json
from collections.abc import Callable
from typing import Final, NamedTuple

import pytest
from structlog.testing import capture_logs
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
from tests.rigs.sandbox import Sandbox, SandboxMarket, catch_up
from tests.settlement.rig import UNIT, SettlementRig, Trader, reverting

from foretell.domain.contracts.calldata import ADD_OPERATOR, SAFE_TRANSFER_FROM
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ChainUnavailable, ExchangeClosed, RpcRefused
from foretell.domain.evm.abi import ContractFunction, contract_function
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address
from foretell.engine.settlement_lag import SettlementLag, lags_of
from foretell.settlement import worker
from foretell.store.trading.trades import load_trade_ids

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
PAUSE: Final = contract_function("pauseTrading()")
UNPAUSE: Final = contract_function("unpauseTrading()")
REMOVE_OPERATOR: Final = contract_function("removeOperator(address)")


class Closing(NamedTuple):
    """The admin's calls that close the exchange to the operator and open it again."""

    close: ContractFunction
    open: ContractFunction
    arguments: Callable[[Sandbox], tuple[Address, ...]]
    cause: str


def operator_of(sandbox: Sandbox) -> tuple[Address, ...]:
    return (sandbox.account(AccountRole.OPERATOR).address,)


PAUSING: Final = Closing(PAUSE, UNPAUSE, lambda _: (), "it is paused")
DISMISSING: Final = Closing(
    REMOVE_OPERATOR, ADD_OPERATOR, operator_of, "is not one of its operators"
)


async def administrate(rig: SettlementRig, function: ContractFunction, closing: Closing) -> None:
    """Have the exchange's admin call this function."""
    sandbox = rig.sandbox
    calldata = function.encode(*closing.arguments(sandbox))
    await sandbox.call(sandbox.account(AccountRole.ADMIN), sandbox.deployment.exchange, calldata)


async def a_trade(market: SandboxMarket, traders: list[Trader], price_ticks: int = 40) -> str:
    """Match a trade that settles as soon as the exchange is open."""
    await traders[0].sell(market, price_ticks, 10 * UNIT)
    (trade_id,) = (await traders[1].buy(market, price_ticks, 10 * UNIT)).trade_ids
    return trade_id


@pytest.mark.parametrize("closing", [PAUSING, DISMISSING], ids=["paused", "not its operator"])
async def test_while_the_exchange_is_closed_trades_wait_and_no_try_is_counted(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], closing: Closing
) -> None:
    trade_ids = [await a_trade(market, traders) for _ in range(3)]
    await administrate(rig, closing.close, closing)
    for _ in range(10):
        with pytest.raises(ExchangeClosed, match=closing.cause):
            await rig.act()
        rig.clock.move(60_000)
    await rig.see()
    assert await rig.statuses(trade_ids) == [TradeStatus.MATCHED] * 3
    waiting = await rig.settlement(trade_ids[0])
    assert (waiting.attempts, waiting.failure, waiting.is_given_up) == (0, None, False)
    await administrate(rig, closing.open, closing)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 3
    assert [sent.tx_id for sent in await rig.sent()] == [
        f"settle:{trade_id}:1" for trade_id in trade_ids
    ]
    await rig.check_ledger()


@pytest.mark.parametrize("is_event_closed", [True, False])
async def test_while_one_exchange_is_closed_the_trades_of_the_other_settle(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    is_event_closed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    event = await rig.open_event()
    for trader in traders[:2]:
        await rig.sandbox.allow(trader.account, rig.exchange(event))
    await rig.see()
    closed, other = (event, market) if is_event_closed else (market, event)
    rig.change(in_flight_max=2)
    waiting = [await minted(closed, traders) for _ in range(3)]
    going = [await minted(other, traders) for _ in range(3)]
    admin = rig.sandbox.account(AccountRole.ADMIN)
    await rig.sandbox.call(admin, rig.exchange(closed), PAUSE.encode())

    for _ in range(6):
        with pytest.raises(ExchangeClosed, match="it is paused"):
            await rig.act()
        await rig.context.operator.run_once()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await rig.see()

    assert await rig.statuses(waiting) == [TradeStatus.MATCHED] * 3
    assert await rig.statuses(going) == [CONFIRMED] * 3
    await rig.sandbox.call(admin, rig.exchange(closed), UNPAUSE.encode())
    await rig.settle()
    assert await rig.statuses([*waiting, *going]) == [CONFIRMED] * 6
    await rig.check_ledger()


async def minted(market: SandboxMarket, traders: list[Trader]) -> str:
    """Match two buyers of complements: a complete set is split for them."""
    await traders[0].buy(market, 40, 10 * UNIT)
    (trade_id,) = (await traders[1].buy(market, 60, 10 * UNIT, is_yes=False)).trade_ids
    return trade_id


async def test_a_transaction_pending_when_a_pause_begins_costs_one_try_and_its_trade_then_waits(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_id = await a_trade(market, traders)
    await rig.automine(is_on=False)
    await rig.act()
    admin = rig.sandbox.account(AccountRole.ADMIN)
    early = Trader(rig, admin, admin.address, traders[0].signature_type)
    await early.overtake(rig.sandbox.deployment.exchange, PAUSE.encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.act()
    await rig.act()
    for _ in range(10):
        rig.clock.move(60_000)
        with pytest.raises(ExchangeClosed):
            await rig.act()
    failed = await rig.settlement(trade_id)
    assert (failed.attempts, failed.tx_id) == (1, f"settle:{trade_id}:2")
    assert failed.failure.startswith("reverted in block ")
    await administrate(rig, UNPAUSE, PAUSING)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    await rig.check_ledger()


async def give_away(
    rig: SettlementRig, market: SandboxMarket, giver: Trader, taker: Trader
) -> None:
    """Have a wallet give all its Yes tokens to another one."""
    units = await rig.chain_units(giver.wallet, AssetId(str(market.tokens.yes)))
    gift = SAFE_TRANSFER_FROM.encode(giver.wallet, taker.wallet, market.tokens.yes, units, b"")
    await giver.execute(rig.sandbox.deployment.conditional_tokens, gift)


DOOMED: Final = 200
FAIR_PASSES_MAX: Final = 3
TOGETHER_PASSES_MAX: Final = 40
"""A pass a second; one after the other, with two tries each, they would take at least 60 s."""


async def test_s1_a_trade_of_strangers_settles_at_once_beside_many_that_never_can(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(attempts_max=2, in_flight_max=10)
    alice, bob, carol = traders
    dora = await rig.trader(6)
    poor = await rig.trader(7)
    await rig.see()
    for _ in range(DOOMED):
        await alice.sell(market, 40, UNIT)
        await poor.buy(market, 40, UNIT)
    await give_away(rig, market, alice, dora)
    for _ in range(3):
        await rig.act()
        rig.clock.move(1_000)

    fair = await a_trade(market, [bob, carol])
    await rig.projection.catch_up()
    for _ in range(FAIR_PASSES_MAX):
        await rig.act()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await rig.see()
    assert await rig.statuses([fair]) == [CONFIRMED]

    passes = 0
    while rig.engine.state.unsettled_trades:
        await rig.act()
        rig.clock.move(1_000)
        await rig.see()
        passes += 1
        assert passes <= TOGETHER_PASSES_MAX
    await rig.check_ledger()


async def test_a_maker_whose_tokens_a_failing_trade_would_bring_keeps_its_order(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(attempts_max=3)
    alice, bob, taker = traders
    poor, dora = await rig.trader(6), await rig.trader(7)
    await rig.see()
    await alice.sell(market, 40, 30 * UNIT)
    await poor.buy(market, 40, 30 * UNIT)
    await give_away(rig, market, alice, dora)
    for _ in range(2):
        await rig.act()
        rig.clock.move(1_000)
    fair = await bob.sell(market, 50, 10 * UNIT)
    short = await poor.sell(market, 50, 30 * UNIT)
    await taker.buy(market, 50, 20 * UNIT)
    await rig.settle()
    async with rig.database.reading() as tx:
        ids = await load_trade_ids(tx, [fair.order_id, short.order_id])
    newest = [ids[order_id][-1] for order_id in (fair.order_id, short.order_id)]
    assert await rig.statuses(newest) == [CONFIRMED, TradeStatus.FAILED]
    assert (await rig.order_row(short.order_id)).close_reason != CloseReason.REVERTS_ON_CHAIN
    await rig.check_ledger()


@pytest.mark.parametrize("word", ["Paused", "NotOperator"])
@pytest.mark.usefixtures("earlier_exchange")
async def test_a_wallet_that_reverts_with_words_of_the_exchange_fails_its_own_trade_only(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], word: str
) -> None:
    alice, bob, _ = traders
    rig.change(attempts_max=2)
    safe = await rig.safe_trader(5, market)
    await rig.see()
    await alice.sell(market, 40, 10 * UNIT)
    (bad,) = (await safe.buy(market, 40, 5 * UNIT)).trade_ids
    (good,) = (await bob.buy(market, 40, 5 * UNIT)).trade_ids
    await rig.sandbox.rpc.send("anvil_setCode", safe.wallet, reverting(word))
    await rig.settle()
    assert await rig.statuses([bad, good]) == [TradeStatus.FAILED, CONFIRMED]
    assert (await rig.settlement(bad)).failure == word
    await rig.check_ledger()


async def test_a_node_that_does_not_answer_whether_the_exchange_is_closed_costs_no_try(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    trade_id = await a_trade(market, traders)
    await administrate(rig, PAUSE, PAUSING)
    proxy.fail("eth_call", honest, *[lose_request] * 20)
    with pytest.raises(ChainUnavailable):
        await rig.act()
    assert (await rig.settlement(trade_id)).attempts == 0


async def test_the_loop_logs_why_it_waits_and_continues_when_the_exchange_opens(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
) -> None:
    await a_trade(market, traders)
    await rig.projection.catch_up()
    await administrate(rig, PAUSE, PAUSING)
    await catch_up(rig.indexer)
    with capture_logs() as logs:
        working = asyncio.create_task(worker.run_settlements(rig.context))
        await until(lambda: bool(logs))
        await administrate(rig, UNPAUSE, PAUSING)
        await until(lambda: "step works again" in [each["event"] for each in logs])
        async with asyncio.timeout(60):
            while not await rig.sent():  # noqa: ASYNC110 - no watch reports this row
                await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    (waits,) = [each for each in logs if each["event"] == "step failed and is repeated"]
    assert (waits["log_level"], waits["loop"]) == ("warning", "settlements")
    assert waits["cause"].startswith("ExchangeClosed: ")
    assert len(await rig.sent()) == 1


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - no watch reports a log line
            await asyncio.sleep(0.01)


def refuse_those_with(wallet: Address) -> Fault:
    """The node refuses calls that name a wallet."""
    word = wallet.removeprefix("0x")

    async def fault(request: Request, forward: Forward) -> Answer | None:
        is_named = word in json.dumps(request["params"])
        return await (refuse("not allowed") if is_named else honest)(request, forward)

    return fault


async def test_h4_a_trade_that_the_node_refuses_keeps_no_order_of_others_from_matching(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, carol = traders
    dave = await rig.trader(6)
    await rig.see()
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.begin()
    proxy.fail_always("eth_call", refuse_those_with(bob.wallet))
    await rig.act()
    row = await rig.settlement(trade_id)
    assert (row.attempts, row.refusals) == (0, 1)
    await rig.see()
    assert await rig.statuses([trade_id]) == [TradeStatus.RETRYING]
    await carol.sell(market, 50, 10 * UNIT)
    rig.clock.move(200_000)
    buy = dave.order(market, Side.BUY, 50, 10 * UNIT)
    assert not SettlementLag(rig.engine).refusal_of(dave.placing(market, buy))


@pytest.mark.parametrize("has_batches", [False, True])
@pytest.mark.parametrize("method", ["eth_call", "eth_getTransactionCount"])
async def test_h4_while_the_node_refuses_every_transaction_nothing_more_is_matched(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    method: str,
    has_batches: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    rig.has_batches = has_batches
    await rig.restart()
    alice, bob, carol = traders
    dave = await rig.trader(6)
    await rig.see()
    trade_ids = [await a_trade(market, [alice, bob]) for _ in range(3)]
    await rig.begin()
    proxy.fail_always(method, refuse("daily quota exceeded", -32005))
    for _ in range(3):
        with pytest.raises(RpcRefused, match="daily quota exceeded"):
            await rig.act()
        rig.clock.move(60_000)
    row = await rig.settlement(trade_ids[0])
    assert (row.attempts, row.refusals) == (0, 0)
    await rig.see()
    assert await rig.statuses(trade_ids) == [TradeStatus.MATCHED] * 3
    await carol.sell(market, 50, 10 * UNIT)
    buying = dave.placing(market, dave.order(market, Side.BUY, 50, 10 * UNIT))
    assert SettlementLag(rig.engine).refusal_of(buying)

    proxy.heal()
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 3
    assert not SettlementLag(rig.engine).refusal_of(buying)
    await rig.check_ledger()


async def test_h4_trades_behind_one_that_the_node_refuses_are_no_lag_for_others(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    """A trade that waits for the refused one, and one that waits for that: neither keeps orders of strangers out."""
    alice, bob, carol = traders
    poor, next_poor = await rig.trader(6), await rig.trader(7)
    await rig.see()
    await alice.sell(market, 40, 10 * UNIT)
    (refused,) = (await poor.buy(market, 40, 10 * UNIT)).trade_ids
    await give_away(rig, market, poor, bob)
    await give_away(rig, market, next_poor, bob)
    await poor.sell(market, 40, 10 * UNIT)
    (behind,) = (await next_poor.buy(market, 40, 10 * UNIT)).trade_ids
    await next_poor.sell(market, 40, 10 * UNIT)
    (last,) = (await carol.buy(market, 40, 10 * UNIT)).trade_ids
    proxy.fail_always("eth_call", refuse_those_with(alice.wallet))
    for _ in range(30):
        await rig.act()
        rig.clock.move(10_000)
    await rig.see()
    assert await rig.statuses([refused]) == [TradeStatus.RETRYING]
    assert await rig.statuses([behind, last]) != [TradeStatus.MATCHED] * 2
    lags = lags_of(rig.engine.state, rig.clock.now_ms())
    assert {lag.seconds for lag in lags.values()} <= {0}


async def test_h4_trades_of_another_exchange_settle_while_the_node_refuses_all_of_one(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    event = await rig.open_event()
    for trader in traders[:2]:
        await rig.sandbox.allow(trader.account, rig.exchange(event))
    await rig.see()
    waiting, going = await minted(market, traders), await minted(event, traders)
    await rig.begin()
    proxy.fail_always("eth_call", refuse_those_with(rig.exchange(market)))
    for _ in range(4):
        with pytest.raises(RpcRefused, match="not allowed"):
            await rig.act()
        await rig.context.operator.run_once()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await rig.see()
    assert await rig.statuses([waiting, going]) == [TradeStatus.MATCHED, CONFIRMED]
    proxy.heal()
    await rig.settle()
    assert await rig.statuses([waiting]) == [CONFIRMED]
    await rig.check_ledger()

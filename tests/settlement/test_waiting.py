"""What settlement does while the exchange settles nothing at all: that says nothing of any trade."""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import pytest
from structlog.testing import capture_logs
from tests.rigs.fault_proxy import FaultProxy, honest, lose_request
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.settlement.rig import UNIT, Floor, Trader, reverting

from foretell.domain.contracts.calldata import ADD_OPERATOR
from foretell.domain.contracts.sandbox_accounts import Role
from foretell.domain.errors.chain import ChainUnavailable, ExchangeClosed
from foretell.domain.evm.abi import ContractFunction, contract_function
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address
from foretell.settlement import worker

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
PAUSE: Final = contract_function("pauseTrading()")
UNPAUSE: Final = contract_function("unpauseTrading()")
REMOVE_OPERATOR: Final = contract_function("removeOperator(address)")


class Closing(NamedTuple):
    """What the admin does to close the exchange to the operator, and to open it again."""

    close: ContractFunction
    open: ContractFunction
    arguments: Callable[[Sandbox], tuple[Address, ...]]
    cause: str


def operator_of(sandbox: Sandbox) -> tuple[Address, ...]:
    return (sandbox.account(Role.OPERATOR).address,)


PAUSING: Final = Closing(PAUSE, UNPAUSE, lambda _: (), "it is paused")
DISMISSING: Final = Closing(
    REMOVE_OPERATOR, ADD_OPERATOR, operator_of, "is not one of its operators"
)


async def tell(floor: Floor, function: ContractFunction, closing: Closing) -> None:
    """Have the exchange's admin call it."""
    sandbox = floor.sandbox
    calldata = function.encode(*closing.arguments(sandbox))
    await sandbox.call(sandbox.account(Role.ADMIN), sandbox.deployment.exchange, calldata)


async def a_trade(market: SandboxMarket, traders: list[Trader], price_ticks: int = 40) -> str:
    """Match a trade that nothing but the exchange itself keeps from settling."""
    await traders[0].sell(market, price_ticks, 10 * UNIT)
    (trade_id,) = (await traders[1].buy(market, price_ticks, 10 * UNIT)).trade_ids
    return trade_id


@pytest.mark.parametrize("closing", [PAUSING, DISMISSING], ids=["paused", "not its operator"])
async def test_while_the_exchange_is_closed_trades_wait_and_no_try_is_counted(
    floor: Floor, market: SandboxMarket, traders: list[Trader], closing: Closing
) -> None:
    trade_ids = [await a_trade(market, traders) for _ in range(3)]
    await tell(floor, closing.close, closing)
    for _ in range(10):
        with pytest.raises(ExchangeClosed, match=closing.cause):
            await floor.act()
        floor.clock.move(60_000)
    await floor.see()
    assert await floor.statuses(trade_ids) == [TradeStatus.MATCHED] * 3
    waiting = await floor.settlement(trade_ids[0])
    assert (waiting.attempts, waiting.failure, waiting.is_given_up) == (0, None, False)
    await tell(floor, closing.open, closing)
    await floor.settle()
    assert await floor.statuses(trade_ids) == [CONFIRMED] * 3
    assert [carrier.tx_id for carrier in await floor.sent()] == [
        f"settle:{trade_id}:1" for trade_id in trade_ids
    ]
    await floor.check_ledger()


@pytest.mark.parametrize("is_event_closed", [True, False])
async def test_while_one_exchange_is_closed_the_trades_of_the_other_go_on(
    floor: Floor,
    market: SandboxMarket,
    traders: list[Trader],
    is_event_closed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    event = await floor.open_event()
    for trader in traders[:2]:
        await floor.sandbox.allow(trader.account, floor.exchange(event))
    await floor.see()
    closed, other = (event, market) if is_event_closed else (market, event)
    floor.change(in_flight_max=2)
    waiting = [await minted(closed, traders) for _ in range(3)]
    going = [await minted(other, traders) for _ in range(3)]
    admin = floor.sandbox.account(Role.ADMIN)
    await floor.sandbox.call(admin, floor.exchange(closed), PAUSE.encode())

    for _ in range(6):
        with pytest.raises(ExchangeClosed, match="it is paused"):
            await floor.act()
        await floor.services.operator.look()
        await floor.sandbox.mine()
        floor.clock.move(1_000)
        await floor.see()

    assert await floor.statuses(waiting) == [TradeStatus.MATCHED] * 3
    assert await floor.statuses(going) == [CONFIRMED] * 3
    await floor.sandbox.call(admin, floor.exchange(closed), UNPAUSE.encode())
    await floor.settle()
    assert await floor.statuses([*waiting, *going]) == [CONFIRMED] * 6
    await floor.check_ledger()


async def minted(market: SandboxMarket, traders: list[Trader]) -> str:
    """Match two buyers of complements, for whom a complete set is to be split."""
    await traders[0].buy(market, 40, 10 * UNIT)
    (trade_id,) = (await traders[1].buy(market, 60, 10 * UNIT, is_yes=False)).trade_ids
    return trade_id


async def test_what_was_on_its_way_when_a_pause_began_loses_one_try_and_then_waits(
    floor: Floor, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_id = await a_trade(market, traders)
    await floor.automine(is_on=False)
    await floor.act()
    admin = floor.sandbox.account(Role.ADMIN)
    early = Trader(floor, admin, admin.address, traders[0].signature_type)
    await early.overtake(floor.sandbox.deployment.exchange, PAUSE.encode())
    await floor.sandbox.mine(2)
    await floor.automine(is_on=True)
    await floor.act()
    await floor.act()
    for _ in range(10):
        floor.clock.move(60_000)
        with pytest.raises(ExchangeClosed):
            await floor.act()
    failed = await floor.settlement(trade_id)
    assert (failed.attempts, failed.tx_id) == (1, f"settle:{trade_id}:2")
    assert failed.failure.startswith("reverted in block ")
    await tell(floor, UNPAUSE, PAUSING)
    await floor.settle()
    assert await floor.statuses([trade_id]) == [CONFIRMED]
    await floor.check_ledger()


@pytest.mark.parametrize("word", ["Paused", "NotOperator"])
async def test_a_wallet_that_speaks_as_the_exchange_would_fails_its_own_trade_only(
    floor: Floor, market: SandboxMarket, traders: list[Trader], word: str
) -> None:
    alice, bob, _ = traders
    floor.change(attempts_max=2)
    safe = await floor.safe_trader(5, market)
    await floor.see()
    await alice.sell(market, 40, 10 * UNIT)
    (bad,) = (await safe.buy(market, 40, 5 * UNIT)).trade_ids
    (good,) = (await bob.buy(market, 40, 5 * UNIT)).trade_ids
    await floor.sandbox.rpc.send("anvil_setCode", safe.wallet, reverting(word))
    await floor.settle()
    assert await floor.statuses([bad, good]) == [TradeStatus.FAILED, CONFIRMED]
    assert (await floor.settlement(bad)).failure == word
    await floor.check_ledger()


async def test_a_node_that_does_not_say_whether_the_exchange_is_closed_costs_no_try(
    floor: Floor, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    trade_id = await a_trade(market, traders)
    await tell(floor, PAUSE, PAUSING)
    proxy.fail("eth_call", honest, *[lose_request] * 20)
    with pytest.raises(ChainUnavailable):
        await floor.act()
    assert (await floor.settlement(trade_id)).attempts == 0


async def test_the_loop_says_why_it_waits_and_goes_on_when_the_exchange_opens(
    floor: Floor,
    market: SandboxMarket,
    traders: list[Trader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "CLOSED_POLL_S", 0.02)
    await a_trade(market, traders)
    await floor.projection.catch_up()
    await tell(floor, PAUSE, PAUSING)
    with capture_logs() as logs:
        working = asyncio.create_task(worker._work(floor.services))
        await until(lambda: len(logs) > 1)
        await tell(floor, UNPAUSE, PAUSING)
        await until(lambda: "settlement goes on" in [each["event"] for each in logs])
        async with asyncio.timeout(10):
            while not await floor.sent():  # noqa: ASYNC110 - nobody tells of a row
                await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    waits = [each for each in logs if each["event"] == "settlement waits for the exchange"]
    assert len(waits) > 1
    assert {each["log_level"] for each in waits} == {"error"}
    assert len(await floor.sent()) == 1


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - nobody tells of a log
            await asyncio.sleep(0.01)

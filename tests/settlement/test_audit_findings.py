"""The off-chain twins of audit findings: what the engine and settlement do in each of these cases."""

from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import HELD, UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import (
    INCREMENT_NONCE,
    SAFE_TRANSFER_FROM,
    Approve,
    Transfer,
)
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ExchangeClosed, RpcRefused
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import TradeStatus
from foretell.store.creation.halted_markets import (
    RegisteredMarket,
    record_halt,
    record_resumption,
)
from foretell.store.tables import barred_wallets, exchange_fills

pytestmark = pytest.mark.anyio

CONFIRMED, FAILED = TradeStatus.CONFIRMED, TradeStatus.FAILED
REVERTING: Final = "0x5f5ffd"


async def test_unfilled_taker_refund_a_taker_pays_the_makers_price_and_keeps_the_rest(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    before = await rig.chain_units(bob.wallet, COLLATERAL)
    await alice.sell(market, 40, 10 * UNIT)
    taker = await bob.buy(market, 45, 30 * UNIT)
    await rig.settle()
    assert before - await rig.chain_units(bob.wallet, COLLATERAL) == 4 * UNIT
    account = rig.engine.state.ledger.look_up(bob.wallet, COLLATERAL)
    assert (account.confirmed_units, account.reserved_units) == (before - 4 * UNIT, 9 * UNIT)
    await rig.projection.catch_up()
    row = await rig.order_row(taker.order_id)
    assert (row.status, row.matched_units) == (OrderStatus.LIVE, 10 * UNIT)
    await rig.check_ledger()


async def test_stray_tokens_at_the_exchange_go_to_nobody_in_a_match(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    deployment, stray = rig.sandbox.deployment, 7 * UNIT
    await carol.execute(deployment.collateral, Transfer(deployment.exchange, stray).encode())
    await rig.see()
    before = [await rig.chain_units(each.wallet, COLLATERAL) for each in (alice, bob)]
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    after = [await rig.chain_units(each.wallet, COLLATERAL) for each in (alice, bob)]
    assert [now - was for now, was in zip(after, before, strict=True)] == [4 * UNIT, -4 * UNIT]
    assert await rig.sandbox.reader.collateral_units(deployment.exchange) == stray
    for wallet, units in zip((alice.wallet, bob.wallet), after, strict=True):
        assert rig.engine.state.ledger.look_up(wallet, COLLATERAL).confirmed_units == units


async def test_self_trade_orders_of_one_wallet_never_meet_and_nothing_is_sent(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, _, _ = traders
    resting = await alice.sell(market, 40, 10 * UNIT)
    placed = await alice.buy(market, 40, 10 * UNIT)
    await rig.settle()
    assert placed.trade_ids == ()
    row = await rig.order_row(resting.order_id)
    assert (row.status, row.close_reason) == (OrderStatus.CANCELED, CloseReason.SELF_TRADE)
    assert await rig.sent() == []


async def test_fee_per_fill_a_match_of_several_makers_takes_no_fee_of_any(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    await alice.sell(market, 33, 10 * UNIT)
    await carol.buy(market, 61, 10 * UNIT, is_yes=False)
    (trade_id,) = (await bob.buy(market, 40, 20 * UNIT)).trade_ids
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    async with rig.database.reading() as tx:
        fees = [row.fee_units for row in await tx.all(sa.select(exchange_fills.c.fee_units))]
    assert fees == [0, 0, 0]
    await rig.check_ledger()


async def test_failing_settlement_an_operator_without_coin_loses_no_trade_and_no_try(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    operator = rig.sandbox.account(AccountRole.OPERATOR).address
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.sandbox.rpc.send("anvil_setBalance", operator, "0x0")
    for _ in range(3):
        try:
            await rig.act()
        except RpcRefused:
            continue
        finally:
            rig.clock.move(1_000)
    settlement = await rig.settlement(trade_id)
    assert (settlement.attempts, settlement.is_given_up) == (0, False)
    await rig.sandbox.rpc.send("anvil_setBalance", operator, hex(10**20))
    await rig.settle(step_ms=11_000)
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert await rig.fill_count() == 2


async def test_chainsecurity_6_13_a_nonce_that_is_raised_in_the_block_of_the_match_ends_its_order(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    resting = await alice.sell(market, 40, 30 * UNIT)
    taker = await bob.buy(market, 40, 10 * UNIT)
    await rig.automine(is_on=False)
    await rig.act()
    await alice.overtake(rig.sandbox.deployment.exchange, INCREMENT_NONCE.encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(taker.trade_ids) == [FAILED]
    await rig.projection.catch_up()
    assert (await rig.order_row(resting.order_id)).status is OrderStatus.CANCELED
    back = await rig.order_row(taker.order_id)
    assert (back.status, back.matched_units) == (OrderStatus.LIVE, 0)
    await rig.check_ledger()


async def test_an_allowance_that_is_taken_away_before_settlement_closes_orders_and_bars_nobody(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    deployment = rig.sandbox.deployment
    await alice.sell(market, 40, 10 * UNIT)
    other = await bob.buy(market, 20, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await bob.execute(deployment.collateral, Approve(deployment.exchange, 0).encode())
    await rig.act()
    await rig.see()
    assert (await rig.order_row(other.order_id)).close_reason == CloseReason.UNDERFUNDED
    await bob.execute(deployment.collateral, Approve(deployment.exchange, HELD).encode())
    await rig.settle(step_ms=2_000)
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    async with rig.database.reading() as tx:
        assert await tx.all(sa.select(barred_wallets)) == []
    await rig.check_ledger()


@pytest.mark.parametrize("has_batches", [False, True])
async def test_a_token_that_pauses_delays_its_trades_for_any_time_and_bars_nobody(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    *,
    has_batches: bool,
) -> None:
    rig.has_batches = has_batches
    await rig.restart()
    alice, bob, _ = traders
    rpc, collateral = rig.sandbox.rpc, rig.sandbox.deployment.collateral
    resting = await alice.sell(market, 40, 30 * UNIT)
    trade_ids = [
        trade_id for _ in range(2) for trade_id in (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    ]
    rig.change(unsimulated_gas_per_day_max=0)
    code = await rpc.call("eth_getCode", collateral, "latest")
    await rpc.send("anvil_setCode", collateral, REVERTING)
    for _ in range(2 * rig.options.attempts_max):
        with pytest.raises(ExchangeClosed, match="its collateral is not transferred"):
            await rig.act()
        rig.clock.move(rig.options.retry_delay_ms_max)
    await rig.see()
    assert await rig.statuses(trade_ids) == [TradeStatus.MATCHED] * 2
    row = await rig.settlement(trade_ids[0])
    assert (row.attempts, row.failure) == (0, None)
    await rpc.send("anvil_setCode", collateral, code)
    await rig.settle(step_ms=4_000)
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert (await rig.order_row(resting.order_id)).status is OrderStatus.LIVE
    async with rig.database.reading() as tx:
        assert await tx.all(sa.select(barred_wallets)) == []
    await rig.check_ledger()


async def test_a_receiver_of_tokens_without_a_match_changes_its_own_balance_alone(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """Stray outcome tokens: they are sent back by the exchange, and count where they are."""
    alice, bob, _ = traders
    deployment, token = rig.sandbox.deployment, market.tokens.yes
    gift = SAFE_TRANSFER_FROM.encode(alice.wallet, bob.wallet, token, 5 * UNIT, b"")
    await alice.execute(deployment.conditional_tokens, gift)
    await rig.see()
    await rig.check_ledger()


async def test_trades_of_a_market_that_the_chain_lost_wait_until_it_resumes(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    lost = RegisteredMarket(market.condition_id, "request")
    async with rig.database.writing() as tx:
        await record_halt(tx, lost, "lost", rig.clock.now_ms())
    for _ in range(3):
        await rig.act()
        rig.clock.move(60_000)
    assert await rig.settlement(trade_id) is None
    async with rig.database.writing() as tx:
        await record_resumption(tx, lost)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]

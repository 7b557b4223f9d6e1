"""Settlement of matched trades on a real chain."""

import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.fault_proxy import (
    Answer,
    FaultProxy,
    Forward,
    Request,
    lose_answer,
    lose_request,
    refuse,
)
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import INCREMENT_NONCE, Approve
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.families import ForetellError
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.exchange.trade import FILLS_PER_TRADE_MAX, TradeStatus
from foretell.settlement.settle import run_once

pytestmark = pytest.mark.anyio

BROADCAST: Final = "eth_sendRawTransaction"
CONFIRMED: Final = TradeStatus.CONFIRMED


async def held(rig: SettlementRig, trader: Trader, market: SandboxMarket) -> tuple[int, int, int]:
    """Return a trader's balances on the chain: collateral, Yes, No."""
    assets = [COLLATERAL, *(AssetId(str(token)) for token in market.tokens)]
    collateral, yes, no = [await rig.chain_units(trader.wallet, asset) for asset in assets]
    return collateral, yes, no


def change(before: tuple[int, int, int], after: tuple[int, int, int]) -> tuple[int, int, int]:
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


Match = Callable[[SandboxMarket, Trader, Trader], Coroutine[Any, Any, Any]]


async def complementary(market: SandboxMarket, maker: Trader, taker: Trader) -> Any:
    """The maker sells at 0.40; the taker buys for up to 0.45."""
    await maker.sell(market, 40, 10 * UNIT)
    return await taker.buy(market, 45, 10 * UNIT)


async def mint(market: SandboxMarket, maker: Trader, taker: Trader) -> Any:
    """The maker buys No for 0.40; the taker buys Yes for the rest."""
    await maker.buy(market, 40, 10 * UNIT, is_yes=False)
    return await taker.buy(market, 65, 10 * UNIT)


async def merge(market: SandboxMarket, maker: Trader, taker: Trader) -> Any:
    """The maker sells No for 0.40; the taker sells Yes for the rest."""
    await maker.sell(market, 40, 10 * UNIT, is_yes=False)
    return await taker.sell(market, 55, 10 * UNIT)


MATCHES: Final = [
    (complementary, [(4, -10, 0), (-4, 10, 0)]),
    (mint, [(-4, 0, 10), (-6, 10, 0)]),
    (merge, [(4, 0, -10), (6, -10, 0)]),
]


@pytest.mark.parametrize(("match", "of_maker_and_taker"), MATCHES)
@pytest.mark.parametrize("safe_is", ["nobody", "maker", "taker"])
async def test_a_match_settles_to_the_unit(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    match: Match,
    of_maker_and_taker: list[tuple[int, int, int]],
    safe_is: str,
) -> None:
    wallet = await rig.safe_trader(5, market) if safe_is != "nobody" else traders[2]
    pair = {"nobody": traders[:2], "maker": [wallet, traders[0]], "taker": [traders[0], wallet]}
    maker, taker = pair[safe_is]
    await rig.see()
    before = [await held(rig, each, market) for each in (maker, taker)]
    placement = await match(market, maker, taker)
    assert len(placement.trade_ids) == 1
    await rig.settle()
    after = [await held(rig, each, market) for each in (maker, taker)]
    changes = [
        tuple(units // UNIT for units in change(*pair)) for pair in zip(before, after, strict=True)
    ]
    assert changes == of_maker_and_taker
    assert await rig.statuses(placement.trade_ids) == [CONFIRMED]
    await rig.check_ledger()
    (carrying_tx,) = await rig.sent()
    (trade,) = await rig.trades(placement.trade_ids)
    assert (carrying_tx.tx_id, trade.tx_hash) == (
        f"settle:{placement.trade_ids[0]}:1",
        carrying_tx.mined_hash,
    )


async def test_many_makers_settle_in_as_few_calls_as_hold_them(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    for index in range(FILLS_PER_TRADE_MAX + 2):
        maker = (alice, bob)[index % 2]
        await maker.sell(market, 30 + index % 3, UNIT)
        await maker.buy(market, 60, UNIT, is_yes=False)
    placement = await carol.buy(market, 45, 2 * (FILLS_PER_TRADE_MAX + 2) * UNIT)
    assert len(placement.trade_ids) == 3
    await rig.settle()
    trades = await rig.trades(placement.trade_ids)
    assert [len(trade.trade.fills) for trade in trades] == [20, 20, 4]
    assert {trade.status for trade in trades} == {CONFIRMED}
    await rig.check_ledger()


async def test_tokens_bought_in_one_trade_are_sold_in_the_next_at_once(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    poor = await rig.trader(6)
    await rig.see()
    await rig.automine(is_on=False)
    await alice.sell(market, 40, 10 * UNIT)
    bought = await poor.buy(market, 40, 10 * UNIT)
    await bob.buy(market, 50, 10 * UNIT)
    sold = await poor.sell(market, 50, 10 * UNIT)
    await rig.act()
    first, second = await rig.sent()
    assert (first.tx_id, second.tx_id) == (
        f"settle:{bought.trade_ids[0]}:1",
        f"settle:{sold.trade_ids[0]}:1",
    )
    assert second.account_nonce == first.account_nonce + 1
    await rig.settle()
    assert await rig.statuses([*bought.trade_ids, *sold.trade_ids]) == [CONFIRMED] * 2
    await rig.check_ledger()


async def forgetful(request: Request, forward: Forward) -> Answer | None:
    """A node that runs calls on the last block and ignores pending transactions."""
    request["params"][1] = "latest"
    return await forward()


async def test_a_trade_that_needs_an_earlier_one_waits_when_the_node_ignores_pending_transactions(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, _ = traders
    poor = await rig.trader(6)
    await rig.see()
    proxy.fail_always("eth_call", forgetful)
    await rig.automine(is_on=False)
    await alice.sell(market, 40, 10 * UNIT)
    bought = await poor.buy(market, 40, 10 * UNIT)
    await bob.buy(market, 50, 10 * UNIT)
    sold = await poor.sell(market, 50, 10 * UNIT)
    for _ in range(20):
        await rig.act()
        rig.clock.move(10_000)
    waiting = await rig.settlement(sold.trade_ids[0])
    assert (waiting.tx_id, waiting.attempts, waiting.failure) == (None, 0, None)
    assert await rig.statuses(sold.trade_ids) == [TradeStatus.MATCHED]
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses([*bought.trade_ids, *sold.trade_ids]) == [CONFIRMED] * 2
    await rig.check_ledger()


async def forbid(rig: SettlementRig, trader: Trader) -> None:
    """Revoke the exchange's allowance of a trader's collateral."""
    deployment = rig.sandbox.deployment
    await trader.execute(deployment.collateral, Approve(deployment.exchange, 0).encode())


async def test_a_trade_that_reverts_is_tried_again_later_and_settles(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await forbid(rig, bob)
    await rig.act()
    failed = await rig.settlement(trade_id)
    assert (failed.tx_id, failed.attempts, failed.is_given_up) == (None, 1, False)
    assert failed.failure == "InsufficientAllowance"
    assert failed.retry_at_ms == rig.clock.at_ms + rig.options.retry_delay_ms
    await rig.see()
    assert await rig.statuses([trade_id]) == [TradeStatus.RETRYING]
    await rig.act()
    assert (await rig.settlement(trade_id)).attempts == 1
    await rig.sandbox.allow(bob.account, rig.sandbox.deployment.exchange)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert [sent.tx_id for sent in await rig.sent()] == [f"settle:{trade_id}:2"]
    await rig.check_ledger()


async def test_a_trade_that_never_passes_is_given_up_and_moves_nothing(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    rig.change(attempts_max=3)
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await carol.buy(market, 30, 10 * UNIT)
    good = await bob.sell(market, 30, 5 * UNIT)
    await forbid(rig, bob)
    await rig.settle()
    assert await rig.statuses([trade_id, *good.trade_ids]) == [TradeStatus.FAILED, CONFIRMED]
    given_up = await rig.settlement(trade_id)
    assert (given_up.is_given_up, given_up.attempts) == (True, 3)
    assert len(await rig.sent()) == 1
    await rig.check_ledger()
    assert not await run_once(rig.context)


async def test_a_mined_revert_is_tried_again_under_another_id(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    deployment = rig.sandbox.deployment
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.automine(is_on=False)
    await rig.act()
    await bob.overtake(deployment.collateral, Approve(deployment.exchange, 0).encode())
    await rig.sandbox.mine(2)
    await rig.act()
    await rig.act()
    failed = await rig.settlement(trade_id)
    assert (failed.tx_id, failed.attempts) == (None, 1)
    assert failed.failure.startswith("reverted in block ")
    await rig.automine(is_on=True)
    await rig.see()
    assert await rig.statuses([trade_id]) == [TradeStatus.RETRYING]
    await rig.sandbox.allow(bob.account, deployment.exchange)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert [sent.status for sent in await rig.sent()] == [
        TxStatus.FAILED,
        TxStatus.CONFIRMED,
    ]
    await rig.check_ledger()


@pytest.mark.case("D-05")
async def test_a_nonce_used_by_another_transaction_loses_no_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.automine(is_on=False)
    await rig.act()
    await rig.sandbox.rpc.send("anvil_dropAllTransactions")
    operator = rig.context.operator.address
    call = {"from": operator, "to": operator, "value": "0x1", "gas": hex(21_000)}
    await rig.sandbox.rpc.send("eth_sendTransaction", call)
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert [sent.status for sent in await rig.sent()] == [
        TxStatus.CANCELED,
        TxStatus.CONFIRMED,
    ]
    assert await rig.fill_count() == 2
    await rig.check_ledger()


@pytest.mark.parametrize("fault", [lose_request, lose_answer])
async def test_a_broadcast_without_an_answer_settles_once(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy, fault: Any
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    proxy.fail(BROADCAST, fault)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert (len(await rig.sent()), await rig.fill_count()) == (1, 2)
    await rig.check_ledger()


async def test_a_node_that_is_away_counts_against_no_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    proxy.fail_always("eth_call", lose_request)
    for _ in range(3):
        with pytest.raises(ChainUnavailable):
            await rig.act()
    named = await rig.settlement(trade_id)
    assert (named.tx_id, named.attempts) == (f"settle:{trade_id}:1", 0)
    proxy.heal()
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    await rig.check_ledger()


async def test_a_node_that_refuses_one_trade_does_not_hold_up_the_others(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, carol = traders
    await alice.sell(market, 40, 20 * UNIT)
    (one,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    (two,) = (await carol.buy(market, 40, 10 * UNIT)).trade_ids
    proxy.fail("eth_call", refuse("daily quota exceeded", -32005))
    await rig.act()
    named = await rig.settlement(one)
    assert (named.tx_id, named.attempts, named.refusals) == (None, 0, 1)
    assert named.retry_at_ms == rig.clock.at_ms + rig.options.refusal_delay_ms
    assert [sent.tx_id for sent in await rig.sent()] == [f"settle:{two}:1"]
    await rig.settle()
    assert await rig.statuses([one, two]) == [CONFIRMED] * 2
    await rig.check_ledger()


async def test_no_more_trades_than_in_flight_max_are_on_their_way_at_once(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    rig.change(in_flight_max=2)
    await alice.sell(market, 40, 50 * UNIT)
    trade_ids = [(await bob.buy(market, 40, 10 * UNIT)).trade_ids[0] for _ in range(5)]
    await rig.automine(is_on=False)
    for _ in range(3):
        await rig.act()
    assert [sent.tx_id for sent in await rig.sent()] == [
        f"settle:{trade_id}:1" for trade_id in trade_ids[:2]
    ]
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 5
    await rig.check_ledger()


@pytest.mark.case("D-08")
async def test_a_trade_whose_block_a_reorg_removed_settles_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.confirmations = 4
    await rig.restart()
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    before = await rig.sandbox.rpc.send("evm_snapshot")
    await rig.act()
    await rig.see()
    await rig.act()
    assert await rig.statuses([trade_id]) == [TradeStatus.MINED]
    assert await rig.sandbox.rpc.send("evm_revert", before)
    await rig.automine(is_on=False)
    await rig.sandbox.mine(2)
    await rig.see()
    assert await rig.statuses([trade_id]) == [TradeStatus.RETRYING]
    ledger = rig.engine.state.ledger
    assert ledger.look_up(bob.wallet, COLLATERAL).debit_units == 4 * UNIT
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert len(await rig.sent()) == 1
    await rig.check_ledger()


class Crowd:
    """Traders that place orders at random; the engine refuses those that are not covered."""

    def __init__(self, market: SandboxMarket, traders: list[Trader], seed: int) -> None:
        self.market, self.traders = market, traders
        self.random = random.Random(seed)
        self.trade_ids: list[str] = []

    async def place(self) -> None:
        trader, side = self.random.choice(self.traders), self.random.choice(list(Side))
        order_type = self.random.choice([OrderType.GTC] * 4 + [OrderType.FAK, OrderType.FOK])
        price = self.random.choice([1, 7, 33, 40, 45, 50, 50, 55, 60, 67, 93, 99])
        size = self.random.choice([1, 3, 10, 50]) * 100 * self.random.randint(1, 9)
        order = trader.order(self.market, side, price, size, is_yes=self.random.random() < 0.5)
        try:
            placement = await trader.place(self.market, order, order_type)
        except ForetellError:
            return
        self.trade_ids += placement.trade_ids


@settings(
    max_examples=max(4, settings().max_examples // 5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_the_contract_settles_whatever_the_engine_matches(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], seed: int
) -> None:
    crowd = Crowd(market, traders, seed)
    for _ in range(30):
        await crowd.place()
    await rig.settle()
    assert crowd.trade_ids
    assert set(await rig.statuses(crowd.trade_ids)) == {CONFIRMED}
    await rig.check_ledger()


@pytest.mark.case("D-15")
async def test_a_maker_that_raises_its_nonce_before_settlement_loses_the_trade_and_nothing_else(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    rig.change(attempts_max=2)
    before = await held(rig, bob, market)
    await alice.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await alice.execute(rig.sandbox.deployment.exchange, INCREMENT_NONCE.encode())
    await rig.settle()
    assert await rig.statuses([trade_id]) == [TradeStatus.FAILED]
    assert (await rig.settlement(trade_id)).failure == "InvalidNonce"
    assert await held(rig, bob, market) == before
    await rig.check_ledger()


@pytest.mark.case("C-05")
@pytest.mark.usefixtures("earlier_exchange")
async def test_a_wallet_that_rejects_tokens_fails_its_own_trade_only(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    rig.change(attempts_max=2)
    safe = await rig.safe_trader(5, market)
    await rig.see()
    await alice.sell(market, 40, 10 * UNIT)
    (bad,) = (await safe.buy(market, 40, 5 * UNIT)).trade_ids
    (good,) = (await bob.buy(market, 40, 5 * UNIT)).trade_ids
    burning = "0x5b5f56"
    await rig.sandbox.rpc.send("anvil_setCode", safe.wallet, burning)
    await rig.settle()
    assert await rig.statuses([bad, good]) == [TradeStatus.FAILED, CONFIRMED]
    assert len(await rig.sent()) == 1
    await rig.check_ledger()


async def test_without_matched_trades_nothing_is_sent(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    await traders[0].sell(market, 40, 10 * UNIT)
    await rig.projection.catch_up()
    assert not await run_once(rig.context)
    assert await rig.sent() == []

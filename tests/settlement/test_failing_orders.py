"""A trade that cannot settle whole: only the failing orders lose their fills."""

from typing import Final, TypeVar

import pytest
from structlog.testing import capture_logs
from tests.rigs.fault_proxy import FaultProxy, honest, lose_request, refuse
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader, reverting

from foretell.domain.contracts.calldata import SAFE_TRANSFER_FROM, Approve
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.exchange.effects import CloseReason, TradeFailed, TradeSplit
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import OrderStatus, OrderType, Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine.protocol.requests import CommittedCommand
from foretell.store.trading.trade_causes import with_causes
from foretell.store.trading.trades import load_trades_by_id

pytestmark = pytest.mark.anyio

T = TypeVar("T")

CONFIRMED: Final = TradeStatus.CONFIRMED
FAILED: Final = TradeStatus.FAILED
REVERTING: Final = "0x5f5ffd"
"""Code that reverts every call."""


async def held(rig: SettlementRig, trader: Trader, market: SandboxMarket) -> list[int]:
    """Return a trader's balances on the chain in whole units: collateral, Yes, No."""
    assets = [COLLATERAL, *(AssetId(str(token)) for token in market.tokens)]
    return [await rig.chain_units(trader.wallet, asset) // UNIT for asset in assets]


def splits_of(rig: SettlementRig) -> list[TradeSplit]:
    """Return a list to which every split is added that the engine commits from now on."""
    return effects_of(rig, TradeSplit)


def effects_of(rig: SettlementRig, kind: type[T]) -> list[T]:
    """Return a list to which every effect of a kind is added that the engine commits from now on."""
    found: list[T] = []

    def on_committed(committed: CommittedCommand) -> None:
        found.extend(each for each in committed.effects if isinstance(each, kind))

    rig.engine.subscribe(on_committed)
    return found


async def every_part(rig: SettlementRig, trade_id: str, splits: list[TradeSplit]) -> dict[str, str]:
    """Return the status of each maker order of a trade, in whichever part its fill is now."""
    ids = [trade_id, *(part.trade_id for split in splits for part in split.parts)]
    return {
        fill.maker_order_id: row.status.value
        for row in await rig.trades(ids)
        for fill in row.trade.fills
    }


@pytest.mark.case("C-05", "D-14")
@pytest.mark.usefixtures("earlier_exchange")
async def test_an_honest_maker_settles_next_to_any_failing_makers(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(attempts_max=2)
    alice, bob, taker = traders
    dave = await rig.trader(3)
    await rig.sandbox.split(dave.account, market, 100 * UNIT)
    safe = await rig.safe_trader(5, market)
    await rig.see()
    everyone = [alice, bob, dave, safe, taker]
    before = [await held(rig, each, market) for each in everyone]
    fair = await alice.sell(market, 40, 10 * UNIT)
    raised = await dave.sell(market, 40, 10 * UNIT)
    broken = await safe.buy(market, 60, 10 * UNIT, is_yes=False)
    ending = bob.order(market, Side.SELL, 40, 15 * UNIT)
    canceled = await bob.place(market, ending)
    (trade_id,) = (await taker.buy(market, 40, 40 * UNIT)).trade_ids
    await bob.cancel_on_chain(ending)
    await dave.raise_nonce()
    await rig.sandbox.rpc.send("anvil_setCode", safe.wallet, REVERTING)
    splits = splits_of(rig)
    await rig.settle()
    assert await every_part(rig, trade_id, splits) == {
        fair.order_id: CONFIRMED,
        raised.order_id: FAILED,
        broken.order_id: FAILED,
        canceled.order_id: FAILED,
    }
    after = [await held(rig, each, market) for each in everyone]
    changes = [
        [now - then for then, now in zip(*pair, strict=True)]
        for pair in zip(before, after, strict=True)
    ]
    assert changes == [[4, -10, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [-4, 10, 0]]
    assert len(await rig.sent()) == 1
    await rig.check_ledger()


@pytest.mark.case("D-14")
@pytest.mark.usefixtures("earlier_exchange")
async def test_an_honest_maker_does_not_wait_for_the_tries_of_the_others(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, taker = traders
    safe = await rig.safe_trader(5, market)
    await rig.see()
    await alice.sell(market, 40, 10 * UNIT)
    await bob.sell(market, 40, 10 * UNIT)
    broken = await safe.buy(market, 60, 20 * UNIT, is_yes=False)
    (trade_id,) = (await taker.buy(market, 40, 30 * UNIT)).trade_ids
    await bob.raise_nonce()
    await rig.sandbox.rpc.send("anvil_setCode", safe.wallet, REVERTING)
    splits = splits_of(rig)
    for _ in range(4):
        await rig.act()
        await rig.sandbox.mine()
        await rig.see()
    (split,) = splits
    ended, waiting = [part.trade_id for part in split.parts]
    assert await rig.statuses([trade_id, ended, waiting]) == [
        CONFIRMED,
        FAILED,
        TradeStatus.RETRYING,
    ]
    rest = await rig.order_row(broken.order_id)
    assert (rest.status, rest.close_reason) == (
        OrderStatus.CANCELED,
        CloseReason.REVERTS_ON_CHAIN,
    )
    ledger = rig.engine.state.ledger
    assert ledger.look_up(taker.wallet, COLLATERAL).debit_units == 4 * UNIT


async def test_a_fill_that_passes_again_later_settles(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, taker = traders
    deployment = rig.sandbox.deployment
    await alice.sell(market, 40, 10 * UNIT)
    await bob.buy(market, 60, 10 * UNIT, is_yes=False)
    (trade_id,) = (await taker.buy(market, 40, 20 * UNIT)).trade_ids
    await bob.execute(deployment.collateral, Approve(deployment.exchange, 0).encode())
    splits = splits_of(rig)
    for _ in range(3):
        await rig.act()
        await rig.see()
    ((part,),) = [split.parts for split in splits]
    await rig.sandbox.allow(bob.account, deployment.exchange)
    await rig.settle()
    assert await rig.statuses([trade_id, part.trade_id]) == [CONFIRMED, CONFIRMED]
    assert [sent.tx_id for sent in await rig.sent()] == [
        f"settle:{trade_id}:1",
        f"settle:{part.trade_id}:2",
    ]
    await rig.check_ledger()


async def test_a_maker_whose_order_is_over_fails_the_trade_at_the_first_try(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    order = alice.order(market, Side.SELL, 40, 10 * UNIT)
    await alice.place(market, order)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await alice.cancel_on_chain(order)
    await rig.act()
    over = await rig.settlement(trade_id)
    assert (over.is_given_up, over.attempts, over.failure) == (True, 1, "OrderFilledOrCancelled")
    causes = effects_of(rig, TradeFailed)
    await rig.see()
    assert await rig.statuses([trade_id]) == [FAILED]
    assert [(each.trade_id, each.cause) for each in causes] == [(trade_id, over.failure)]
    async with rig.database.reading() as tx:
        (failed,) = await with_causes(tx, await load_trades_by_id(tx, [trade_id]))
    assert failed.cause == over.failure
    await rig.check_ledger()


async def test_a_taker_that_raised_its_nonce_fails_at_once_and_its_rest_leaves_the_book(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, taker = traders
    first = await alice.sell(market, 40, 10 * UNIT)
    await bob.sell(market, 40, 10 * UNIT)
    placed = await taker.buy(market, 40, 50 * UNIT)
    await taker.raise_nonce()
    await rig.act()
    await rig.feed.run_once()
    await rig.projection.catch_up()
    assert await rig.statuses(placed.trade_ids) == [FAILED]
    row = await rig.order_row(placed.order_id)
    assert (row.status, row.close_reason) == (OrderStatus.CANCELED, CloseReason.REVERTS_ON_CHAIN)
    back = await rig.order_row(first.order_id)
    assert (back.status, back.matched_units) == (OrderStatus.LIVE, 0)
    await rig.see()
    await rig.check_ledger()


async def test_a_taker_short_of_collateral_settles_what_it_can_pay_and_no_maker_is_blamed(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(attempts_max=2)
    alice, bob, taker = traders
    await alice.sell(market, 40, 10 * UNIT)
    other = await bob.sell(market, 40, 20 * UNIT)
    (trade_id,) = (await taker.buy(market, 40, 20 * UNIT)).trade_ids
    deployment = rig.sandbox.deployment
    allowance = Approve(deployment.exchange, 5 * UNIT).encode()
    await taker.execute(deployment.collateral, allowance)
    splits = splits_of(rig)
    await rig.settle()
    assert sorted((await every_part(rig, trade_id, splits)).values()) == [CONFIRMED, FAILED]
    assert (await rig.order_row(other.order_id)).status is OrderStatus.LIVE
    await rig.check_ledger()


@pytest.mark.case("D-15")
async def test_a_maker_that_moved_its_tokens_loses_only_its_own_fill(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(attempts_max=2)
    alice, bob, taker = traders
    sandbox = rig.sandbox
    one = await alice.sell(market, 40, 10 * UNIT)
    gone = await bob.sell(market, 40, 10 * UNIT)
    (trade_id,) = (
        await taker.place(market, taker.order(market, Side.BUY, 40, 20 * UNIT), OrderType.FOK)
    ).trade_ids
    units = await rig.chain_units(bob.wallet, AssetId(str(market.tokens.yes)))
    gift = SAFE_TRANSFER_FROM.encode(bob.wallet, alice.wallet, market.tokens.yes, units, b"")
    await bob.execute(sandbox.deployment.conditional_tokens, gift)
    splits = splits_of(rig)
    await rig.settle()
    assert await every_part(rig, trade_id, splits) == {
        one.order_id: CONFIRMED,
        gone.order_id: FAILED,
    }
    await rig.check_ledger()


async def test_a_split_survives_a_restart_between_any_two_steps(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, taker = traders
    await alice.sell(market, 40, 10 * UNIT)
    await bob.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await taker.buy(market, 40, 20 * UNIT)).trade_ids
    await bob.raise_nonce()
    await rig.act()
    await rig.restart()
    await rig.act()
    assert await rig.sent() == []
    await rig.feed.run_once()
    await rig.restart()
    await rig.settle()
    (trade,) = await rig.trades([trade_id])
    assert (trade.status, [fill.maker for fill in trade.trade.fills]) == (
        CONFIRMED,
        [alice.wallet],
    )
    await rig.check_ledger()


@pytest.mark.usefixtures("earlier_exchange")
async def test_a_wallet_that_reverts_as_a_closed_exchange_does_delays_no_other_fill(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(attempts_max=1)
    alice, _, taker = traders
    safe = await rig.safe_trader(5, market)
    await rig.see()
    fair = await alice.sell(market, 40, 10 * UNIT)
    liar = await safe.buy(market, 60, 10 * UNIT, is_yes=False)
    (trade_id,) = (await taker.buy(market, 40, 20 * UNIT)).trade_ids
    await rig.sandbox.rpc.send("anvil_setCode", safe.wallet, reverting("Paused"))
    splits = splits_of(rig)
    await rig.settle()
    assert await every_part(rig, trade_id, splits) == {
        fair.order_id: CONFIRMED,
        liar.order_id: FAILED,
    }


@pytest.mark.parametrize("answered", range(2, 5))
async def test_a_node_that_stops_answering_while_a_trade_is_examined_costs_no_try(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    proxy: FaultProxy,
    answered: int,
) -> None:
    alice, bob, taker = traders
    await alice.sell(market, 40, 10 * UNIT)
    await bob.sell(market, 40, 10 * UNIT)
    (trade_id,) = (await taker.buy(market, 40, 20 * UNIT)).trade_ids
    await bob.raise_nonce()
    proxy.fail("eth_call", *[honest] * answered, *[lose_request] * 20)
    with pytest.raises(ChainUnavailable):
        await rig.act()
    named = await rig.settlement(trade_id)
    assert (named.tx_id, named.attempts) == (f"settle:{trade_id}:1", 0)
    proxy.heal()
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    await rig.check_ledger()


async def test_an_order_canceled_on_chain_leaves_the_book_within_one_pass(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    order = alice.order(market, Side.SELL, 40, 10 * UNIT)
    placed = await alice.place(market, order)
    other = await alice.sell(market, 41, 10 * UNIT)
    await alice.cancel_on_chain(order)
    await rig.see()
    row = await rig.order_row(placed.order_id)
    assert (row.status, row.close_reason) == (OrderStatus.CANCELED, CloseReason.CANCELED_ON_CHAIN)
    assert list(rig.engine.state.live_orders) == [other.order_id]
    assert (await bob.buy(market, 40, 10 * UNIT)).trade_ids == ()


@pytest.mark.case("D-15")
async def test_a_raised_nonce_removes_every_order_of_its_maker_from_the_book(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    ended = [await alice.sell(market, 50, 10 * UNIT), await alice.buy(market, 30, 10 * UNIT)]
    other = await bob.sell(market, 50, 10 * UNIT)
    await alice.raise_nonce()
    await rig.see()
    rows = [await rig.order_row(each.order_id) for each in ended]
    assert {row.close_reason for row in rows} == {CloseReason.NONCE_RAISED}
    assert list(rig.engine.state.live_orders) == [other.order_id]
    again = await alice.sell(market, 50, 10 * UNIT, nonce=1)
    assert again.order_id in rig.engine.state.live_orders


async def test_a_trade_that_the_node_refuses_gives_its_place_to_another(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    rig.change(in_flight_max=1)
    alice, bob, carol = traders
    await alice.sell(market, 40, 20 * UNIT)
    (one,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    (two,) = (await carol.buy(market, 40, 10 * UNIT)).trade_ids
    proxy.fail("eth_call", refuse("daily quota exceeded", -32005))
    with capture_logs() as logs:
        await rig.act()
        await rig.act()
    assert [
        each["trade_id"] for each in logs if each["event"] == "settlement refused by the node"
    ] == [one]
    assert [sent.tx_id for sent in await rig.sent()] == [f"settle:{two}:1"]
    await rig.settle()
    assert await rig.statuses([one, two]) == [CONFIRMED] * 2
    await rig.check_ledger()

"""Trading at a market's end date, until it has an answer, and after its payout."""

import pytest
from tests.rigs.rows import ORACLE, Rows
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_sell,
    a_settlement,
    a_word,
    an_address,
    an_asset,
    an_order_id,
)

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.store.index.oracle_answers import Answer, AnswerStep, record_answers

pytestmark = pytest.mark.anyio

MARKET = a_word("market")
TWO_DAYS_MS = 2 * 86_400_000


async def run_once(rig: TradingRig) -> None:
    """Have the engine read the chain's state from the tables."""
    context = rig.context
    await ChainFeed(
        rig.host.engine, context.database, context.exchanges, confirmations=1
    ).run_once()


async def answer(rig: TradingRig, *steps: AnswerStep) -> None:
    question = a_word("question market")
    rows = [
        Answer(number, 0, 0, ORACLE, question, step, an_address("ann"), "1", 7, a_word("answer"))
        for number, step in enumerate(steps, 1)
    ]
    async with rig.context.database.writing() as tx:
        await record_answers(tx, rows)


async def pay(rig: TradingRig) -> None:
    async with rig.context.database.writing() as tx:
        await Rows(tx).resolve("market", 1, 0)


@pytest.mark.parametrize(
    "steps",
    [(), (AnswerStep.PROPOSED,), (AnswerStep.PROPOSED, AnswerStep.DISPUTED)],
    ids=["no answer", "proposed", "disputed"],
)
async def test_a_market_trades_on_after_its_end_date_until_it_has_its_payout(
    rig: TradingRig, alice: Trader, bob: Trader, steps: tuple[AnswerStep, ...]
) -> None:
    rig.clock.move(TWO_DAYS_MS)
    await answer(rig, *steps)
    await run_once(rig)
    assert (await bob.placed(a_sell("bob")))["status"] == "live"
    assert (await alice.placed(a_buy("alice")))["status"] == "matched"
    market = (await rig.client.get(f"/markets/{MARKET}")).json()
    assert (market["closed"], market["accepting_orders"]) == (False, True)


@pytest.mark.case("B-12")
async def test_a_payout_ends_the_trading_and_frees_reserved_funds(
    rig: TradingRig, alice: Trader
) -> None:
    order_ids = [
        (await alice.placed(a_buy("alice", price_ticks=ticks)))["orderID"] for ticks in (10, 20, 30)
    ]
    await pay(rig)
    await run_once(rig)
    refused = await alice.place(a_buy("alice", price_ticks=40))
    assert (refused.status_code, refused.json()["code"]) == (404, "market_closed")
    orders = [await alice.get(f"/data/order/{order_id}") for order_id in order_ids]
    assert {(each["status"], each["close_reason"]) for each in orders} == {
        ("CANCELED", "market_resolved")
    }
    assert (await alice.get("/data/orders"))["data"] == []
    account = rig.host.engine.state.ledger.look_up(alice.address, COLLATERAL)
    assert account.reserved_units == 0


async def test_a_trade_that_was_matched_before_the_payout_settles_after_it(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await bob.placed(a_sell("bob"))
    taking = a_buy("alice")
    await alice.placed(taking)
    await pay(rig)
    await run_once(rig)
    ledger, yes = rig.host.engine.state.ledger, an_asset(is_yes=True)
    assert ledger.look_up(alice.address, yes).credit_units == 10 * TOKEN
    trade_id = trade_id_of(an_order_id(taking), 0)
    await rig.submit(a_settlement(trade_id, TradeStatus.CONFIRMED))
    (trade,) = (await alice.get("/data/trades"))["data"]
    assert (trade["id"], trade["status"]) == (trade_id, "CONFIRMED")
    assert ledger.look_up(alice.address, yes).credit_units == 0


async def test_a_payout_that_is_seen_again_ends_nothing_twice(
    rig: TradingRig, alice: Trader
) -> None:
    await alice.placed(a_buy("alice"))
    await pay(rig)
    await run_once(rig)
    sequence = rig.host.engine.sequence
    await run_once(rig)
    assert rig.host.engine.sequence == sequence

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.trading import Trader, TradingRig, a_rig_on, first_answer
from tests.rigs.values import (
    EXCHANGE,
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_signed_order,
    a_spending,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_order_id,
    some_funds,
)

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, ResolveMarket
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.engine.protocol.requests import committed_effects
from foretell.engine.writer.projection import COMMANDS_BEHIND_MAX
from foretell.store.database import Database
from foretell.trading.handlers import orders

pytestmark = pytest.mark.anyio

UNMATCHED = (
    "no orders found to match with FAK order. FAK orders are partially filled or killed if no match"
    " is found."
)


async def refusal(trader: Trader, order: Any, order_type: str = "GTC", **fields: Any) -> Any:
    """Return the status of a refusal, its words and its code."""
    response = await trader.place(order, order_type, **fields)
    body = response.json()
    return response.status_code, body["error"], body["code"]


@pytest.mark.spec(102)
async def test_an_order_without_a_match_rests(alice: Trader) -> None:
    order = a_buy("alice", price_ticks=40)
    assert await alice.placed(order) == {
        "success": True,
        "errorMsg": "",
        "orderID": an_order_id(order),
        "orderHash": an_order_id(order),
        "status": "live",
        "makingAmount": "",
        "takingAmount": "",
        "transactionsHashes": [],
        "tradeIDs": [],
    }


async def test_a_matched_order_returns_the_amounts_of_its_match(alice: Trader, bob: Trader) -> None:
    await alice.placed(a_buy("alice", price_ticks=40, size_units=10 * TOKEN))
    answer = await bob.placed(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))
    assert answer["status"] == "matched"
    assert (answer["makingAmount"], answer["takingAmount"]) == ("10", "4")
    assert len(answer["tradeIDs"]) == 1


async def test_a_part_of_an_order_may_match_and_the_rest_of_it_rest(
    alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_sell("alice", price_ticks=40, size_units=6 * TOKEN))
    answer = await bob.placed(a_buy("bob", price_ticks=41, size_units=10 * TOKEN))
    assert answer["status"] == "live"
    assert (answer["makingAmount"], answer["takingAmount"]) == ("2.4", "6")


async def test_two_buyers_of_opposite_outcomes_meet(alice: Trader, bob: Trader) -> None:
    await alice.placed(a_buy("alice", price_ticks=40))
    answer = await bob.placed(a_buy("bob", price_ticks=60, is_yes=False))
    assert (answer["makingAmount"], answer["takingAmount"]) == ("6", "10")


async def test_a_market_order_spends_a_sum(alice: Trader, bob: Trader) -> None:
    await alice.placed(a_sell("alice", price_ticks=40, size_units=100 * TOKEN))
    answer = await bob.placed(a_spending("bob", price_ticks=50, budget_units=10 * TOKEN), "FOK")
    assert (answer["makingAmount"], answer["takingAmount"]) == ("10", "25")


@pytest.mark.case("C-10")
async def test_an_order_sent_again_is_not_placed_again(rig: TradingRig, alice: Trader) -> None:
    order = a_buy("alice")
    first = await alice.placed(order)
    again = await alice.placed(order)
    assert first_answer(again) == first
    assert len(rig.host.engine.state.live_orders) == 1


@pytest.mark.deviation(10)
async def test_an_order_sent_again_shows_its_present_state(alice: Trader, bob: Trader) -> None:
    order = a_buy("alice", price_ticks=40, size_units=10 * TOKEN)
    first = await alice.placed(order)
    await bob.placed(a_sell("bob", price_ticks=40, size_units=6 * TOKEN))
    partly = await alice.placed(order)
    await alice.send("DELETE", "/order", {"orderID": first["orderID"]})
    canceled = await alice.placed(order)

    assert (partly["status"], partly["present"]["status"]) == ("live", "LIVE")
    assert partly["present"]["size_matched"] == "6"
    assert (canceled["status"], canceled["present"]["status"]) == ("live", "CANCELED")
    assert canceled["present"] == await alice.get(f"/data/order/{first['orderID']}")
    assert first_answer(canceled) == first


async def test_each_order_of_a_batch_sent_again_shows_its_present_state(alice: Trader) -> None:
    bodies = [alice.body(a_buy("alice", salt=salt)) for salt in (1, 2)]
    first = (await alice.send("POST", "/orders", bodies)).json()
    await alice.send("DELETE", "/order", {"orderID": first[0]["orderID"]})
    again = (await alice.send("POST", "/orders", bodies)).json()
    assert [each["present"]["status"] for each in again] == ["CANCELED", "LIVE"]


async def test_an_order_sent_again_while_tables_are_behind_has_its_first_answer_alone(
    fresh_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "PRESENT_WAIT_S", 0.05)
    async with a_rig_on(tmp_path / "journal", fresh_database, writes=False) as rig:
        await rig.open("market", "alice")
        alice = await rig.trader("alice")
        first = await alice.placed(a_buy("alice", salt="1"))
        again = await alice.placed(a_buy("alice", salt="1"))
    assert again == first | {"replayed": True}


async def test_a_matched_order_sent_again_returns_the_same_trades(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_sell("alice"))
    order = a_buy("bob")
    first = await bob.placed(order)
    assert first_answer(await bob.placed(order)) == first
    assert len(rig.host.engine.state.unsettled_trades) == 1


async def test_an_order_sent_again_after_it_expired_has_its_first_answer(
    rig: TradingRig, alice: Trader
) -> None:
    order = a_buy("alice", expiration_s=NOW_S + 100)
    first = await alice.placed(order, "GTD")
    rig.clock.move(200_000)
    assert first_answer(await alice.placed(order, "GTD")) == first


async def test_an_order_sent_again_after_its_market_resolved_has_its_first_answer(
    rig: TradingRig, alice: Trader
) -> None:
    order = a_buy("alice")
    first = await alice.placed(order)
    await rig.submit(ResolveMarket(rig.clock.at_ms, a_word("market")))
    assert first_answer(await alice.placed(order)) == first


@pytest.mark.parametrize(
    ("order", "words", "code"),
    [
        (
            a_buy("bob"),
            "the order signer address has to be the address of the API KEY",
            "signer_not_caller",
        ),
        (
            a_signed_order("alice", maker=an_address("bob")),
            "Invalid order payload",
            "wrong_wallet",
        ),
        (
            a_signed_order("alice", maker=an_address("bob"), signature_type=SignatureType.SAFE),
            "Invalid order payload",
            "wrong_wallet",
        ),
        (
            a_signed_order("alice", signature_type=SignatureType.SAFE),
            "Invalid order payload",
            "wrong_wallet",
        ),
        (
            a_signed_order("alice", signature_type=SignatureType.PROXY),
            "Invalid order payload",
            "wrong_wallet",
        ),
        (
            a_signed_order("alice", signature_type=SignatureType.CONTRACT),
            "Invalid order payload",
            "wallet_needs_version2",
        ),
        (
            a_signed_order("alice", taker=an_address("bob")),
            "Invalid order payload",
            "private_order",
        ),
        (a_buy("alice", nonce=1), "invalid nonce", "invalid_order_nonce"),
        (
            a_buy("alice", fee_rate_bps=1),
            "Invalid order payload",
            "invalid_fee_rate",
        ),
        (
            a_buy("alice", expiration_s=NOW_S + 1000),
            "invalid expiration",
            "invalid_expiration",
        ),
        (
            a_signed_order("alice", maker_amount=0),
            "Invalid order payload",
            "malformed_order",
        ),
        (
            a_signed_order("alice", signature=a_buy("bob").signature),
            "Invalid order payload",
            "signer_mismatch",
        ),
        (
            a_buy("alice", exchange=an_address("another exchange")),
            "Invalid order payload",
            "signer_mismatch",
        ),
        (
            a_buy("alice", price_ticks=50, size_units=3 * 10**6 * TOKEN),
            "not enough balance / allowance",
            "insufficient_balance",
        ),
    ],
)
async def test_an_order_with_a_wrong_field_is_refused(
    alice: Trader, order: SignedOrder, words: str, code: str
) -> None:
    assert await refusal(alice, order) == (400, words, code)


async def test_an_order_of_another_owner_is_refused(alice: Trader) -> None:
    body = alice.body(a_buy("alice")) | {"owner": "11111111-2222-4333-8444-555555555555"}
    response = await alice.send("POST", "/order", body)
    assert response.status_code == 400
    assert response.json()["error"] == "the order owner has to be the owner of the API KEY"


@pytest.mark.deviation(9)
async def test_an_order_of_version_two_needs_its_fields(alice: Trader) -> None:
    body = alice.body(a_buy("alice"), changed={"timestamp": "1800000000000"})
    response = await alice.send("POST", "/order", body)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_order")


async def test_a_price_off_the_tick_is_refused_with_the_tick(alice: Trader) -> None:
    order = a_signed_order("alice", maker_amount=4_050_000, taker_amount=10_000_000)
    status, words, code = await refusal(alice, order)
    assert (status, code) == (400, "price_off_tick")
    assert words == (
        f"order {an_order_id(order)} is invalid. Price (0.405) breaks minimum tick size rule: 0.01"
    )


async def test_a_size_below_the_minimum_is_refused_with_the_minimum(alice: Trader) -> None:
    order = a_buy("alice", size_units=4_990_000)
    status, words, code = await refusal(alice, order)
    assert (status, code) == (400, "size_below_minimum")
    assert words == (
        f"order {an_order_id(order)} is invalid. Size (4.99) lower than the minimum: 5"
    )


async def test_the_same_order_of_another_type_is_a_duplicate(alice: Trader, bob: Trader) -> None:
    await bob.placed(a_sell("bob"))
    order = a_spending("alice")
    await alice.placed(order, "FAK")
    status, words, code = await refusal(alice, order, "FOK")
    assert (status, code) == (400, "order_duplicated")
    assert words == f"order {an_order_id(order)} is invalid. Duplicated."


@pytest.mark.parametrize("token_id", ["1", "", "0x12", "yes", "9" * 200])
async def test_a_token_that_does_not_trade_has_no_book(alice: Trader, token_id: str) -> None:
    body = alice.body(a_buy("alice"), changed={"tokenId": token_id})
    response = await alice.send("POST", "/order", body)
    assert response.status_code == 404
    assert response.json()["error"] == "No orderbook exists for the requested token id"


async def test_a_resolved_market_takes_no_orders(rig: TradingRig, alice: Trader) -> None:
    await rig.submit(ResolveMarket(rig.clock.at_ms, a_word("market")))
    assert await refusal(alice, a_buy("alice")) == (
        404,
        "No orderbook exists for the requested token id",
        "market_closed",
    )


@pytest.mark.parametrize(
    ("ahead_s", "order_type", "status"),
    [(61, "GTD", 200), (60, "GTD", 400), (0, "GTD", 400), (-1, "GTD", 400), (61, "GTC", 400)],
)
async def test_an_expiration_must_be_a_minute_ahead(
    alice: Trader, ahead_s: int, order_type: str, status: int
) -> None:
    order = a_buy("alice", expiration_s=NOW_S + ahead_s)
    assert (await alice.place(order, order_type)).status_code == status


async def test_a_good_till_date_order_needs_a_date(alice: Trader) -> None:
    assert (await refusal(alice, a_buy("alice"), "GTD"))[1] == "invalid expiration"


async def test_a_post_only_order_is_refused_where_it_would_match(
    alice: Trader, bob: Trader
) -> None:
    await bob.placed(a_sell("bob", price_ticks=50))
    assert await refusal(alice, a_buy("alice", price_ticks=50), postOnly=True) == (
        400,
        "invalid post-only order: order crosses book",
        "post_only_would_cross",
    )
    assert (await alice.placed(a_buy("alice", price_ticks=49), postOnly=True))["status"] == "live"


async def test_an_order_that_cannot_fill_as_its_type_requires_is_killed(
    alice: Trader, bob: Trader
) -> None:
    assert await refusal(alice, a_spending("alice"), "FAK") == (
        400,
        UNMATCHED,
        "fill_and_kill_unmatched",
    )
    await bob.placed(a_sell("bob", size_units=5 * TOKEN))
    assert await refusal(alice, a_spending("alice", budget_units=10 * TOKEN), "FOK") == (
        400,
        "order couldn't be fully filled. FOK orders are fully filled or killed.",
        "fill_or_kill_unfilled",
    )


async def test_an_order_of_a_safe_reserves_funds_of_the_safe(
    rig: TradingRig, alice: Trader
) -> None:
    safe = rig.context.wallets.safe_of(alice.address)
    await rig.submit(
        an_observation(
            [BalanceSeen(safe, COLLATERAL, 100 * TOKEN)],
            [AllowanceSeen(safe, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )
    order = a_signed_order("alice", maker=safe, signature_type=SignatureType.SAFE)
    assert (await alice.placed(order))["status"] == "live"
    account = rig.host.engine.state.ledger.look_up(safe, COLLATERAL)
    assert account.reserved_units == 5 * TOKEN


@pytest.mark.parametrize("profile", [0, 1, 2])
async def test_an_order_may_be_signed_for_every_domain_that_is_served(
    rig: TradingRig, alice: Trader, profile: int
) -> None:
    order = a_buy("alice", profile=profile)
    answer = await alice.placed(order)
    assert answer["orderID"] == an_order_id(order)
    kept = rig.host.engine.state.live_orders[answer["orderID"]]
    assert kept.signer == alice.address


async def test_orders_of_different_domains_trade_with_each_other(
    alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_buy("alice", profile=1))
    assert (await bob.placed(a_sell("bob", profile=2)))["status"] == "matched"


async def test_a_new_nonce_is_accepted_at_once_and_the_old_one_refused(
    rig: TradingRig, alice: Trader
) -> None:
    await alice.placed(a_buy("alice"))
    rig.chain.nonce_by_maker[alice.address] = 7
    rig.clock.move(1_000)
    await alice.placed(a_buy("alice", nonce=7))
    assert (await refusal(alice, a_buy("alice", salt="2")))[1] == "invalid nonce"


async def test_without_a_chain_an_order_of_a_new_maker_is_refused(
    rig: TradingRig, alice: Trader
) -> None:
    rig.chain.failure = ChainUnavailable("eth_call", "gone")
    assert (await alice.place(a_buy("alice"))).status_code == 502


async def test_no_order_is_taken_while_the_tables_are_too_far_behind(
    fresh_database: Database, tmp_path: Path
) -> None:
    async with a_rig_on(tmp_path / "journal", fresh_database, writes=False) as rig:
        alice = await rig.trader("alice")
        await rig.open("market", "alice")
        unwritten = committed_effects(rig.host.projection.sequence + 1, ())
        for _ in range(COMMANDS_BEHIND_MAX + 1):
            rig.host.projection.on_committed(unwritten)
        response = await alice.place(a_buy("alice"))
    assert (response.status_code, response.json()["code"]) == (503, "engine_busy")
    assert response.headers["retry-after"] == "1"


async def test_orders_of_a_batch_succeed_and_fail_one_by_one(alice: Trader, bob: Trader) -> None:
    await bob.placed(a_sell("bob", price_ticks=50))
    bodies = [
        alice.body(a_buy("alice", price_ticks=50)),
        alice.body(a_buy("alice", price_ticks=50, nonce=3)),
        {"order": 1},
        alice.body(a_buy("alice", price_ticks=30)),
        alice.body(a_spending("alice", price_ticks=40), "FAK"),
    ]
    response = await alice.send("POST", "/orders", bodies)
    assert response.status_code == 200
    answers = response.json()
    assert [answer["success"] for answer in answers] == [True, False, False, True, False]
    assert [answer["status"] for answer in answers] == ["matched", "", "", "live", ""]
    assert [answer["errorMsg"] for answer in answers][1:3] == [
        "invalid nonce",
        "Invalid order payload",
    ]
    assert answers[4]["errorMsg"].startswith("no orders found to match with FAK order")
    assert answers[1]["orderID"] == ""
    assert answers[1]["code"] == "invalid_order_nonce"


async def test_the_same_order_twice_in_a_batch_is_placed_once(
    alice: Trader, rig: TradingRig
) -> None:
    body = alice.body(a_buy("alice"))
    first, second = (await alice.send("POST", "/orders", [body, body])).json()
    assert first_answer(second) == first
    assert len(rig.host.engine.state.live_orders) == 1


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "Invalid order payload"), (16, "Too many orders in payload: 16, max allowed: 15")],
)
async def test_a_batch_is_of_one_to_fifteen_orders(alice: Trader, count: int, words: str) -> None:
    body = alice.body(a_buy("alice"))
    response = await alice.send("POST", "/orders", [body] * count)
    assert (response.status_code, response.json()["error"]) == (400, words)


@pytest.mark.spec(102)
async def test_a_body_that_was_changed_in_transit_is_refused(alice: Trader) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    other = body.replace(b"GTC", b"GTD")
    response = await alice.rig.client.post("/order", content=other, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"] == "Unauthorized/Invalid api key"
    assert response.json()["code"] == "l2_signature_mismatch"


@pytest.mark.case("B-02")
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sizes=st.lists(st.integers(5, 60), min_size=2, max_size=8))
async def test_parallel_orders_never_spend_more_than_there_is(
    rig: TradingRig, alice: Trader, sizes: list[int]
) -> None:
    market = rig.another_market()
    await rig.open(market)
    await rig.submit(some_funds("alice", units=100 * TOKEN, market=market))
    orders = [
        a_sell("alice", price_ticks=60, size_units=size * TOKEN, market=market, salt=str(salt))
        for salt, size in enumerate(sizes)
    ]
    answers = await asyncio.gather(*(alice.place(order) for order in orders))
    units_by_status: dict[int, list[int]] = {200: [], 400: []}
    for order, answer in zip(orders, answers, strict=True):
        units_by_status[answer.status_code].append(order.size_units)
    token = an_asset(is_yes=True, market=market)
    reserved = rig.host.engine.state.ledger.look_up(alice.address, token).reserved_units
    assert sum(units_by_status[200]) == reserved <= 100 * TOKEN
    assert reserved + min(units_by_status[400], default=100 * TOKEN) > 100 * TOKEN - 1


@pytest.mark.case("B-02")
@pytest.mark.parametrize("contenders", [2, 16])
async def test_of_parallel_orders_for_the_last_unit_one_wins(
    rig: TradingRig, alice: Trader, contenders: int
) -> None:
    carol = await rig.trader("carol")
    await carol.placed(a_sell("carol", price_ticks=50, size_units=5 * TOKEN))
    takers = [a_spending("alice", 50, 2_500_000, salt=str(salt)) for salt in range(contenders)]
    answers = await asyncio.gather(*(alice.place(order, "FOK") for order in takers))
    assert sorted(answer.status_code for answer in answers) == [200, *[400] * (contenders - 1)]


@pytest.mark.parametrize("is_deferred", [True, False])
async def test_an_order_whose_execution_is_deferred_gets_the_same_answer(
    alice: Trader, bob: Trader, *, is_deferred: bool
) -> None:
    """No answer waits for the chain, so there is nothing to defer: matched is matched."""
    await bob.placed(a_sell("bob", price_ticks=40))
    answer = await alice.placed(a_buy("alice", price_ticks=40), deferExec=is_deferred)
    assert (answer["status"], answer["transactionsHashes"]) == ("matched", [])
    assert len(answer["tradeIDs"]) == 1
    batch = [bob.body(a_sell("bob", price_ticks=90, salt="2"), deferExec=is_deferred)]
    (entry,) = (await bob.send("POST", "/orders", batch)).json()
    assert entry["status"] == "live"

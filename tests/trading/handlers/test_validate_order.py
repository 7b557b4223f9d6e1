from typing import Any

import pytest
from tests.rigs.refusals import every_refusal
from tests.rigs.trading import Trader, TradingRig, order_json
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
    an_observation,
    an_order_id,
)

from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, ResolveMarket
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.exchange.signing.structs import STRUCTS
from foretell.domain.values.hexadecimal import checksum_address, word_of

pytestmark = pytest.mark.anyio

CURES = {kind.cure for kind in every_refusal() if kind.cure is not None}
RULES = [
    "body",
    "owner",
    "fields",
    "signer",
    "maker",
    "market",
    "signature",
    "terms",
    "expiration",
    "nonce",
    "wallet",
    "funds and book",
]


async def validate(trader: Trader, body: object) -> Any:
    response = await trader.send("POST", "/order/validate", body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert [rule["rule"] for rule in answer["rules"]] == RULES
    return answer


def verdicts(answer: Any) -> dict[str, bool | None]:
    return {rule["rule"]: rule["pass"] for rule in answer["rules"]}


def failures(answer: Any) -> dict[str, str]:
    return {rule["rule"]: rule["code"] for rule in answer["rules"] if rule["pass"] is False}


async def test_an_order_that_would_be_accepted_passes_every_rule(
    rig: TradingRig, alice: Trader
) -> None:
    order = a_buy("alice", price_ticks=40)
    answer = await validate(alice, alice.body(order))
    assert verdicts(answer) == dict.fromkeys(RULES, True)
    assert (answer["valid"], answer["cure"]) == (True, None)
    assert answer["orderHash"] == an_order_id(order)
    assert answer["structHash"] == word_of(STRUCTS[1].hash(order))
    assert answer["expected"] == checksum_address(alice.address)
    assert answer["funds"]["balance"] == str(10**6 * TOKEN)
    assert not rig.host.engine.state.live_orders
    assert (await alice.placed(order))["orderID"] == answer["orderHash"]


async def test_the_signer_is_recovered_under_every_domain(alice: Trader) -> None:
    order = a_buy("alice", profile=1)
    answer = await validate(alice, alice.body(order))
    assert [signed["name"] for signed in answer["signedAs"]] == [
        "Foretell Exchange",
        "Polymarket CTF Exchange",
        "CTF Exchange",
    ]
    assert [signed["matches"] for signed in answer["signedAs"]] == [False, True, False]
    own, signed, _ = answer["signedAs"]
    assert own["verifyingContract"] == checksum_address(EXCHANGE)
    assert signed["orderHash"] == an_order_id(order) != own["orderHash"]
    assert signed["recovered"] == answer["expected"] != own["recovered"]


async def test_an_impossible_signature_recovers_no_signer(alice: Trader) -> None:
    order = a_buy("alice", signature=b"\xff" * 32 + b"\x01" * 32 + b"\x1b")
    answer = await validate(alice, alice.body(order))
    assert {signed["recovered"] for signed in answer["signedAs"]} == {None}
    assert failures(answer) == {"signature": "malformed_signature"}


@pytest.mark.parametrize(
    ("order", "order_type", "failed"),
    [
        (a_buy("bob"), "GTC", {"signer": "signer_not_caller"}),
        (a_signed_order("alice", maker=an_address("bob")), "GTC", {"maker": "wrong_wallet"}),
        (
            a_signed_order("alice", signature_type=SignatureType.SAFE),
            "GTC",
            {"maker": "wrong_wallet"},
        ),
        (
            a_signed_order("alice", signature_type=SignatureType.PROXY),
            "GTC",
            {"maker": "wrong_wallet"},
        ),
        (a_signed_order("alice", taker=an_address("bob")), "GTC", {"fields": "private_order"}),
        (a_signed_order("alice", token_id="12"), "GTC", {"market": "unknown_market"}),
        (
            a_buy("alice", signature=a_buy("bob").signature),
            "GTC",
            {"signature": "signer_mismatch"},
        ),
        (
            a_signed_order("alice", maker_amount=4_050_000),
            "GTC",
            {"terms": "price_off_tick"},
        ),
        (a_buy("alice", size_units=TOKEN), "GTC", {"terms": "size_below_minimum"}),
        (a_buy("alice", fee_rate_bps=30), "GTC", {"terms": "invalid_fee_rate"}),
        (a_buy("alice", expiration_s=NOW_S + 600), "GTC", {"terms": "invalid_expiration"}),
        (a_buy("alice", expiration_s=NOW_S), "GTD", {"expiration": "invalid_expiration"}),
        (a_buy("alice", nonce=1), "GTC", {"nonce": "invalid_order_nonce"}),
        (
            a_buy("alice", size_units=10**7 * TOKEN),
            "GTC",
            {"funds and book": "insufficient_balance"},
        ),
        (a_spending("alice"), "FOK", {"funds and book": "fill_or_kill_unfilled"}),
        (a_spending("alice"), "FAK", {"funds and book": "fill_and_kill_unmatched"}),
        (
            a_buy("alice", nonce=1, size_units=TOKEN, expiration_s=NOW_S),
            "GTD",
            {
                "terms": "size_below_minimum",
                "expiration": "invalid_expiration",
                "nonce": "invalid_order_nonce",
            },
        ),
    ],
)
async def test_each_rule_that_fails_is_named_with_a_cure(
    alice: Trader, order: SignedOrder, order_type: str, failed: dict[str, str]
) -> None:
    answer = await validate(alice, alice.body(order, order_type))
    assert failures(answer) == failed
    assert answer["valid"] is False
    first = next(rule for rule in answer["rules"] if rule["pass"] is False)
    assert answer["cure"] == first["cure"]
    assert first["cure"] in CURES
    response = await alice.place(order, order_type)
    assert response.json()["code"] in failed.values()
    assert response.json()["error"] in {rule.get("error") for rule in answer["rules"]}


@pytest.mark.parametrize(
    ("changed", "failed"),
    [
        ({"owner": "somebody"}, {"owner": "owner_mismatch"}),
        ({"orderType": "IOC"}, {"body": "malformed_order"}),
        ({"order": {"timestamp": "1"}}, {"body": "malformed_order"}),
    ],
)
async def test_a_body_is_checked_too(
    alice: Trader, changed: dict[str, Any], failed: dict[str, str]
) -> None:
    answer = await validate(alice, alice.body(a_buy("alice")) | changed)
    assert failures(answer) == failed


async def test_a_rule_that_cannot_be_checked_has_no_verdict(alice: Trader) -> None:
    answer = await validate(alice, {"order": 1})
    assert verdicts(answer) == {"body": False} | dict.fromkeys(RULES[1:])
    assert (answer["orderHash"], answer["expected"], answer["funds"]) == (None, None, None)
    assert answer["signedAs"] == []


async def test_the_terms_are_checked_though_the_signature_is_wrong(alice: Trader) -> None:
    order = a_buy("alice", size_units=TOKEN, signature=a_buy("bob").signature)
    answer = await validate(alice, alice.body(order))
    assert set(failures(answer)) == {"signature", "terms"}


async def test_missing_funds_are_returned_with_their_numbers(
    rig: TradingRig, alice: Trader
) -> None:
    await rig.submit(
        an_observation(
            [BalanceSeen(alice.address, COLLATERAL, 4 * TOKEN)],
            [AllowanceSeen(alice.address, EXCHANGE, is_collateral=True, units=3 * TOKEN)],
        )
    )
    answer = await validate(alice, alice.body(a_buy("alice", price_ticks=40)))
    last = answer["rules"][-1]
    assert last["code"] == "insufficient_allowance"
    assert (last["details"]["need"], last["details"]["allowance"]) == (4 * TOKEN, 3 * TOKEN)
    assert answer["funds"]["allowance"] == str(3 * TOKEN)


async def test_a_sale_is_checked_against_the_balance_of_its_token(alice: Trader) -> None:
    await alice.placed(a_sell("alice", price_ticks=70, size_units=10 * TOKEN))
    answer = await validate(alice, alice.body(a_sell("alice", price_ticks=70, salt="2")))
    assert answer["funds"]["reserved"] == str(10 * TOKEN)


async def test_the_funds_of_another_address_are_not_shown(alice: Trader) -> None:
    answer = await validate(alice, alice.body(a_buy("bob")))
    assert answer["funds"] is None


@pytest.mark.parametrize(
    "order",
    [
        a_buy("bob", size_units=10**7 * TOKEN),
        a_signed_order("alice", maker=an_address("bob")),
        a_sell("bob", size_units=10**7 * TOKEN),
        a_sell("alice", size_units=10**7 * TOKEN, maker=an_address("bob")),
    ],
)
async def test_funds_and_book_are_not_checked_for_the_wallet_of_another_address(
    alice: Trader, bob: Trader, order: SignedOrder
) -> None:
    await bob.placed(a_buy("bob", price_ticks=10))
    answer = await validate(alice, alice.body(order))
    assert answer["rules"][-1] == {"rule": "funds and book", "pass": None}
    assert answer["funds"] is None
    assert answer["valid"] is False


async def test_a_dry_run_does_not_reveal_that_another_address_placed_the_order(
    alice: Trader, bob: Trader
) -> None:
    order = a_buy("bob")
    unplaced = await validate(alice, alice.body(order))
    await bob.placed(order)
    assert await validate(alice, alice.body(order)) == unplaced


async def test_funds_and_book_are_checked_though_another_rule_failed(alice: Trader) -> None:
    order = a_buy("alice", nonce=1, size_units=10**7 * TOKEN)
    answer = await validate(alice, alice.body(order))
    assert failures(answer) == {
        "nonce": "invalid_order_nonce",
        "funds and book": "insufficient_balance",
    }


async def test_a_post_only_order_is_checked_against_the_book(alice: Trader, bob: Trader) -> None:
    await bob.placed(a_sell("bob"))
    answer = await validate(alice, alice.body(a_buy("alice"), postOnly=True))
    assert failures(answer) == {"funds and book": "post_only_would_cross"}


async def test_an_order_that_was_placed_is_still_valid_as_it_was(
    alice: Trader, bob: Trader
) -> None:
    await bob.placed(a_sell("bob"))
    order = a_spending("alice")
    await alice.placed(order, "FAK")
    assert (await validate(alice, alice.body(order, "FAK")))["valid"] is True
    other = await validate(alice, alice.body(order, "FOK"))
    assert failures(other) == {"funds and book": "order_duplicated"}


async def test_a_market_that_is_over_is_named(rig: TradingRig, alice: Trader) -> None:
    await rig.submit(ResolveMarket(rig.clock.at_ms, a_word("market")))
    answer = await validate(alice, alice.body(a_buy("alice")))
    assert failures(answer) == {"market": "unknown_market", "funds and book": "market_closed"}


async def test_without_credentials_nothing_is_checked(rig: TradingRig) -> None:
    response = await rig.client.post("/order/validate", json={"order": order_json(a_buy())})
    assert response.status_code == 401

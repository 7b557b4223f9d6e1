import json

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_S, TOKEN, a_buy, an_order_id

from foretell.domain.errors.exchange import InvalidExpiration
from foretell.domain.errors.order import InvalidOrderNonce, OwnerMismatch, SignerNotCaller
from foretell.domain.exchange.order import SignedOrder
from foretell.edge.auth import L2Caller
from foretell.trading.handlers.order_rules import (
    ORDER_RULES,
    RULES_AFTER_SIGNATURE,
    RULES_BEFORE_SIGNATURE,
    SIGNATURE_RULE,
    OrderCheck,
    prepare_order,
)

pytestmark = pytest.mark.anyio


def a_check(rig: TradingRig, trader: Trader, order: SignedOrder, kind: str = "GTC") -> OrderCheck:
    caller = L2Caller(trader.address, trader.key_id, "service_")
    return OrderCheck(rig.context, caller, json.dumps(trader.body(order, kind)).encode())


def test_only_funds_and_book_are_left_to_the_engine() -> None:
    before = (*RULES_BEFORE_SIGNATURE, SIGNATURE_RULE, *RULES_AFTER_SIGNATURE)
    assert [rule.name for rule in ORDER_RULES[len(before) :]] == ["funds and book"]
    assert ORDER_RULES[: len(before)] == before


async def test_before_the_body_is_parsed_only_its_own_rule_can_be_checked(
    rig: TradingRig, alice: Trader
) -> None:
    check = a_check(rig, alice, a_buy("alice"))
    assert [rule.name for rule in ORDER_RULES if rule.needs(check)] == ["body"]


async def test_once_all_rules_passed_every_rule_could_be_checked(
    rig: TradingRig, alice: Trader
) -> None:
    check = a_check(rig, alice, a_buy("alice"))
    await prepare_order(check)
    assert all(rule.needs(check) for rule in ORDER_RULES)


async def test_an_order_that_passes_becomes_a_command(rig: TradingRig, alice: Trader) -> None:
    order = a_buy("alice", profile=1, expiration_s=NOW_S + 600)
    check = a_check(rig, alice, order, "GTD")
    command = await prepare_order(check)
    assert (command.order, command.order_id) == (order, an_order_id(order))
    assert (command.owner, command.at_ms) == (alice.key_id, rig.clock.at_ms)


async def test_an_order_is_refused_for_the_first_rule_that_it_breaks(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    foreign = a_check(rig, alice, a_buy("bob", nonce=1, size_units=TOKEN))
    with pytest.raises(SignerNotCaller):
        await prepare_order(foreign)
    foreign.caller = L2Caller(bob.address, bob.key_id, "service_")
    with pytest.raises(OwnerMismatch):
        await prepare_order(foreign)


async def test_the_signer_of_an_order_is_not_recovered_before_the_cheaper_rules_passed(
    rig: TradingRig, alice: Trader
) -> None:
    check = a_check(rig, alice, a_buy("bob"))
    with pytest.raises(SignerNotCaller):
        await prepare_order(check)
    assert (check.token, check.order_id) == (None, None)


async def test_expiration_and_nonce_do_not_matter_for_an_order_that_was_placed(
    rig: TradingRig, alice: Trader
) -> None:
    order = a_buy("alice", expiration_s=NOW_S + 100)
    await alice.placed(order, "GTD")
    rig.clock.move(200_000)
    rig.chain.nonce_by_maker[alice.address] = 1
    await prepare_order(a_check(rig, alice, order, "GTD"))
    other = a_buy("alice", expiration_s=NOW_S + 100, salt="2")
    with pytest.raises(InvalidExpiration):
        await prepare_order(a_check(rig, alice, other, "GTD"))
    with pytest.raises(InvalidOrderNonce):
        await prepare_order(a_check(rig, alice, a_buy("alice", salt="3")))

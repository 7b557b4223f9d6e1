"""Orders that a contract approves by a call, because it cannot judge a signature."""

from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.packed import match_packed
from tests.contracts.signing import EOA, ERC1271, OWN_V1, OWN_V2, SELL, UNIT, Order
from tests.contracts.wallets import REVERT, a_wallet, answer, wallet

APPROVED = "OrderPreapproved(bytes32,address)"
INVALIDATED = "OrderPreapprovalInvalidated(bytes32)"
RECEIPT = answer(bytes.fromhex("f23a6e61").ljust(32, b"\0"))
HALF = Fill(UNIT // 4, (UNIT // 2,))
CALLS = pytest.mark.parametrize("call", [World.match, match_packed])


@pytest.fixture
def ask(world: World) -> Order:
    """An order of a contract that reverts when it is asked about a signature."""
    address = a_wallet(world, wallet(REVERT, RECEIPT))
    order = Order(address, address, world.yes, UNIT, UNIT // 2, SELL)
    return replace(order, profile=OWN_V2, signature_type=ERC1271)


@pytest.fixture
def bid(world: World) -> Order:
    return world.buy(world.taker, world.yes, UNIT, 50)


@CALLS
def test_a_contract_approves_an_order_in_place_of_a_signature(
    world: World, bid: Order, ask: Order, call: Any
) -> None:
    with reverts("InvalidSignature"):
        call(world, bid, [ask], HALF)
    receipt = world.exchange.send("preapproveOrder", ask.fields, sender=ask.maker)
    digest = world.hash(ask)
    assert world.exchange.logs(receipt, APPROVED) == [
        {"orderHash": digest, "maker": ask.maker.lower()}
    ]
    assert world.exchange.call("isPreapproved", digest)
    world.exchange.call("validateOrder", ask.fields)
    call(world, bid, [ask], HALF)


@CALLS
def test_an_approval_can_be_taken_back_between_two_fills(
    world: World, bid: Order, ask: Order, call: Any
) -> None:
    world.exchange.send("preapproveOrder", ask.fields, sender=ask.maker)
    call(world, bid, [ask], HALF)
    digest = world.hash(ask)
    receipt = world.exchange.send("invalidatePreapprovedOrder", digest, sender=ask.maker)
    assert world.exchange.logs(receipt, INVALIDATED) == [{"orderHash": digest}]
    assert not world.exchange.call("isPreapproved", digest)
    with reverts("InvalidSignature"):
        call(world, bid, [ask], HALF)


def test_an_approval_covers_no_other_order(world: World, bid: Order, ask: Order) -> None:
    world.exchange.send("preapproveOrder", ask.fields, sender=ask.maker)
    with reverts("InvalidSignature"):
        world.match(bid, [replace(ask, salt=2)], HALF)


def test_a_signature_is_judged_even_if_the_order_is_approved(
    world: World, bid: Order, ask: Order
) -> None:
    world.exchange.send("preapproveOrder", ask.fields, sender=ask.maker)
    with reverts("InvalidSignature"):
        world.match(bid, [replace(ask, signature=b"s")], HALF)


def test_only_the_maker_approves_and_takes_back(world: World, ask: Order) -> None:
    for role in (world.operator, world.admin):
        with reverts("NotOwner"):
            world.exchange.send("preapproveOrder", ask.fields, sender=role)
    world.exchange.send("preapproveOrder", ask.fields, sender=ask.maker)
    with reverts("NotOwner"):
        world.exchange.send("invalidatePreapprovedOrder", world.hash(ask), sender=world.admin)
    with reverts("NotOwner"):
        world.exchange.send("invalidatePreapprovedOrder", bytes(32), sender=ask.maker)


def test_an_approved_order_is_of_type_3_and_its_makers_own(world: World, ask: Order) -> None:
    with reverts("InvalidSigner"):
        forged = replace(ask, signer=world.operator)
        world.exchange.send("preapproveOrder", forged.fields, sender=ask.maker)
    for changed in ({"signature_type": EOA}, {"profile": OWN_V1}):
        with reverts("InvalidSignatureType"):
            other = replace(ask, **changed)  # type: ignore[arg-type]
            world.exchange.send("preapproveOrder", other.fields, sender=ask.maker)


def test_a_cancelled_order_stays_cancelled(world: World, bid: Order, ask: Order) -> None:
    world.exchange.send("cancelOrder", ask.fields, sender=ask.maker)
    world.exchange.send("preapproveOrder", ask.fields, sender=ask.maker)
    with reverts("OrderFilledOrCancelled"):
        world.match(bid, [ask], HALF)

"""Cancelling by the tuple of the ecosystem's v1 exchange, which names no signing profile (L-13)."""

from typing import Any

import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.safes import a_safe
from tests.contracts.signing import FOREIGN_V1, OWN_V1, OWN_V2, SAFE, UNIT, Order, signed

V1 = (
    "(uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,"
    "uint8,uint8,bytes)"
)
ONE = f"cancelOrder({V1})"
MANY = f"cancelOrders({V1}[])"
CANCELLED = "OrderCancelled(bytes32)"


def v1_tuple(order: Order) -> tuple[Any, ...]:
    """Return the twelve signed fields and the signature."""
    return (
        *(order.salt, order.maker, order.signer, order.taker, order.token_id),
        *(order.maker_amount, order.taker_amount, order.expiration, order.nonce),
        *(order.fee_rate_bps, order.side, order.signature_type, order.signature),
    )


@pytest.mark.parametrize("profile", [OWN_V1, FOREIGN_V1])
@pytest.mark.parametrize("signature", [b"", bytes(65)])
def test_l13_an_order_is_cancelled_by_the_ecosystems_tuple_in_every_v1_profile(
    world: World, profile: int, signature: bytes
) -> None:
    maker = world.makers[0]
    marks = {"salt": 2**255, "expiration": 2**40, "fee_rate_bps": 7, "taker": world.operator}
    orders = [
        world.sell(maker, world.yes, UNIT, 50, profile=each, **marks)
        for each in (OWN_V1, FOREIGN_V1)
    ]
    given = v1_tuple(orders[[OWN_V1, FOREIGN_V1].index(profile)])[:-1]
    receipt = world.exchange.send(ONE, (*given, signature), sender=maker.address)
    hashes = [world.hash(order) for order in orders]
    assert [log["orderHash"] for log in world.exchange.logs(receipt, CANCELLED)] == hashes
    assert [world.exchange.call("orderStatus", each) for each in hashes] == [(True, 0)] * 2


def test_l13_the_v2_order_with_the_same_fields_stays(world: World) -> None:
    maker = world.makers[0]
    order, other = (
        world.sell(maker, world.yes, UNIT, 50, profile=profile) for profile in (OWN_V1, OWN_V2)
    )
    world.exchange.send(ONE, v1_tuple(order), sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [other], Fill(UNIT // 2, (UNIT,)))


def test_l13_only_the_maker_or_its_safes_owner_cancels(world: World) -> None:
    owner = world.evm.actor("owner of a safe")
    safe = a_safe(world, owner)
    order = world.sell(world.makers[0], world.yes, UNIT, 50)
    with reverts("NotOwner"):
        world.exchange.send(ONE, v1_tuple(order), sender=owner.address)
    theirs = Order(safe.address, owner.address, world.yes, UNIT, UNIT, 0, signature_type=SAFE)
    theirs = signed(theirs, owner, world.exchange.address)
    world.exchange.send(ONE, v1_tuple(theirs), sender=owner.address)
    assert world.exchange.call("orderStatus", world.hash(theirs)) == (True, 0)


def test_l13_an_order_that_ended_in_every_profile_is_refused(world: World) -> None:
    maker = world.makers[0]
    order = world.sell(maker, world.yes, UNIT, 50)
    world.exchange.send("cancelOrder", order.fields, sender=maker.address)
    world.exchange.send(ONE, v1_tuple(order), sender=maker.address)
    with reverts("OrderFilledOrCancelled"):
        world.exchange.send(ONE, v1_tuple(order), sender=maker.address)


@pytest.mark.parametrize("count", [0, 1, 20])
def test_l13_many_orders_are_cancelled_by_the_ecosystems_tuples(world: World, count: int) -> None:
    maker = world.makers[0]
    orders = [world.sell(maker, world.yes, UNIT, 50, salt=salt) for salt in range(count)]
    world.exchange.send(MANY, [v1_tuple(order) for order in orders], sender=maker.address)
    assert all(world.exchange.call("orderStatus", world.hash(each)) == (True, 0) for each in orders)


def test_l13_more_than_twenty_are_refused(world: World) -> None:
    maker = world.makers[0]
    order = v1_tuple(world.sell(maker, world.yes, UNIT, 50))
    with reverts("TooManyOrders"):
        world.exchange.send(MANY, [order] * 21, sender=maker.address)


def test_l13_a_pause_stops_no_cancelling(world: World) -> None:
    maker = world.makers[0]
    order = world.sell(maker, world.yes, UNIT, 50)
    world.exchange.send("pauseTrading", sender=world.admin)
    world.exchange.send(ONE, v1_tuple(order), sender=maker.address)
    assert world.exchange.call("orderStatus", world.hash(order)) == (True, 0)

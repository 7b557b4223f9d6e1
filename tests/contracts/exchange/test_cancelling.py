from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.safes import a_safe
from tests.contracts.signing import EOA, OWN_V1, OWN_V2, SAFE, UNIT, Order
from tests.contracts.wallets import a_wallet

CANCELLED = "OrderCancelled(bytes32)"
PREAPPROVED = "OrderPreapproved(bytes32,address)"
ORDERS_MAX = 20


@pytest.fixture
def ask(world: World) -> Order:
    return world.sell(world.makers[0], world.yes, 100 * UNIT, 50)


@pytest.mark.parametrize("profile", range(4))
def test_cancel_order_cancels_an_order_and_logs_it(world: World, profile: int) -> None:
    maker = world.makers[0]
    ask = world.sell(maker, world.yes, 100 * UNIT, 50, profile=profile)
    receipt = world.exchange.send("cancelOrder", ask.fields, sender=maker.address)
    assert world.exchange.logs(receipt, CANCELLED) == [{"orderHash": world.hash(ask)}]
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    with reverts("OrderFilledOrCancelled"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_cancel_order_cancels_the_rest_of_a_filled_order(world: World, ask: Order) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))
    world.exchange.send("cancelOrder", ask.fields, sender=ask.maker)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def test_cancel_order_refuses_a_closed_order(world: World, ask: Order) -> None:
    world.exchange.send("cancelOrder", ask.fields, sender=ask.maker)
    with reverts("OrderFilledOrCancelled"):
        world.exchange.send("cancelOrder", ask.fields, sender=ask.maker)


@pytest.mark.parametrize("role", ["operator", "admin", "registrar"])
def test_cancel_order_is_for_the_maker_alone(world: World, ask: Order, role: str) -> None:
    with reverts("NotOwner"):
        world.exchange.send("cancelOrder", ask.fields, sender=getattr(world, role))


@pytest.mark.parametrize("signature_type", [EOA, SAFE])
def test_being_named_as_signer_gives_no_rights(
    world: World, ask: Order, signature_type: int
) -> None:
    outsider = world.makers[1].address
    forged = replace(ask, signer=outsider, signature_type=signature_type)
    with reverts("NotOwner"):
        world.exchange.send("cancelOrder", forged.fields, sender=outsider)


@pytest.mark.parametrize("by", ["safe", "owner"])
def test_a_safe_and_its_owner_cancel_the_safes_orders(world: World, by: str) -> None:
    owner = world.makers[0]
    safe = a_safe(world, owner).address
    ask = world.sell(owner, world.yes, UNIT, 50, maker=safe, signature_type=SAFE)
    callers = {"safe": safe, "owner": owner.address}
    world.exchange.send("cancelOrder", ask.fields, sender=callers[by])
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def test_a_wallet_cancels_its_orders(world: World) -> None:
    wallet = a_wallet(world)
    ask = world.sell(
        world.makers[0],
        world.yes,
        UNIT,
        50,
        maker=wallet,
        signer=wallet,
        signature_type=3,
        profile=OWN_V2,
    )
    world.exchange.send("cancelOrder", ask.fields, sender=wallet)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def test_cancel_order_needs_no_valid_signature(world: World, ask: Order) -> None:
    expired = replace(ask, expiration=1, signature=b"")
    world.exchange.send("cancelOrder", expired.fields, sender=ask.maker)
    assert world.exchange.call("orderStatus", world.hash(expired)) == (True, 0)


def test_cancel_orders_cancels_many_and_skips_closed_ones(world: World) -> None:
    maker = world.makers[0]
    asks = [
        world.sell(maker, world.yes, UNIT, 50, salt=salt, profile=(OWN_V1, OWN_V2)[salt % 2])
        for salt in range(ORDERS_MAX)
    ]
    world.exchange.send("cancelOrder", asks[3].fields, sender=maker.address)
    fields = [ask.fields for ask in asks]
    receipt = world.exchange.send("cancelOrders", fields, sender=maker.address)
    hashes = [world.hash(ask) for ask in asks]
    assert [log["orderHash"] for log in world.exchange.logs(receipt, CANCELLED)] == [
        *hashes[:3],
        *hashes[4:],
    ]
    assert {world.exchange.call("orderStatus", digest) for digest in hashes} == {(True, 0)}


def test_cancel_orders_cancels_none_when_one_is_of_another_maker(world: World, ask: Order) -> None:
    theirs = world.sell(world.makers[1], world.yes, UNIT, 50)
    with reverts("NotOwner"):
        world.exchange.send("cancelOrders", [ask.fields, theirs.fields], sender=ask.maker)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (False, 0)


def test_cancel_orders_of_an_empty_list_does_nothing(world: World) -> None:
    receipt = world.exchange.send("cancelOrders", [], sender=world.makers[0].address)
    assert receipt.logs == ()


def test_cancel_orders_refuses_more_than_twenty(world: World, ask: Order) -> None:
    with reverts("TooManyOrders"):
        orders = [ask.fields] * (ORDERS_MAX + 1)
        world.exchange.send("cancelOrders", orders, sender=ask.maker)


@pytest.mark.parametrize("name", ["cancelOrder", "cancelOrders", "preapproveOrder"])
@given(data=st.data())
def test_no_cut_or_changed_byte_ends_an_order_of_another_maker(
    world: World, name: str, data: st.DataObject
) -> None:
    """These calls are decoded by hand: whatever is in them, they are about orders of the caller."""
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    exchange, stranger = world.exchange, world.makers[1].address
    argument = [ask.fields] if name == "cancelOrders" else ask.fields
    whole = exchange.calldata(name, argument)
    at = data.draw(st.integers(4, len(whole) - 1))
    changed = data.draw(st.binary(min_size=0, max_size=32))
    forged = whole[:at] + changed + whole[at + data.draw(st.integers(0, 64)) :]
    with world.evm.rolled_back():
        receipt = world.evm.attempt(stranger, exchange.address, forged)
        logs = exchange.logs(receipt, CANCELLED) + exchange.logs(receipt, PREAPPROVED)
        assert exchange.call("orderStatus", world.hash(ask)) == (False, 0)
        assert not exchange.call("isPreapproved", world.hash(ask))
        assert not receipt.is_success or logs == []

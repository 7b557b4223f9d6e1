from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.evm import Contract, reverts
from tests.contracts.market import Fill, World
from tests.contracts.signing import BUY, OWN_V1, OWN_V2, UNIT, Order

FEE_RATE_BPS_MAX = 1_000


def validate(world: World, order: Order) -> None:
    world.exchange.call("validateOrder", order.fields, sender=world.operator)


def bid(world: World, **fields: Any) -> Order:
    return world.buy(world.taker, world.yes, 100 * UNIT, 50, **fields)


def test_a_private_order_is_for_its_taker_alone(world: World) -> None:
    validate(world, bid(world, taker=world.operator))
    with reverts("NotTaker"):
        validate(world, bid(world, taker=world.makers[0].address))


def test_an_order_is_good_until_its_expiration(world: World) -> None:
    now = world.evm.now()
    order = bid(world, expiration=now + 100)
    world.evm.rpc("evm_setNextBlockTimestamp", now + 100)
    world.evm.rpc("evm_mine")
    assert world.evm.now() == order.expiration
    validate(world, order)
    world.evm.rpc("evm_setNextBlockTimestamp", now + 101)
    world.evm.rpc("evm_mine")
    with reverts("OrderExpired"):
        validate(world, order)


@pytest.mark.parametrize("nonce", [1, 2, 2**256 - 1])
def test_an_order_must_have_its_makers_nonce(world: World, nonce: int) -> None:
    with reverts("InvalidNonce"):
        validate(world, bid(world, nonce=nonce))


def test_a_signed_fee_rate_has_a_limit(world: World) -> None:
    validate(world, bid(world, fee_rate_bps=FEE_RATE_BPS_MAX))
    with reverts("FeeTooHigh"):
        validate(world, bid(world, fee_rate_bps=FEE_RATE_BPS_MAX + 1))


@pytest.mark.parametrize("token", [0, 1, 2**256 - 1])
def test_an_order_must_be_for_a_registered_token(world: World, token: int) -> None:
    order = world.order(world.taker, BUY, token, (UNIT, 2 * UNIT))
    with reverts("InvalidTokenId"):
        validate(world, order)


def test_validate_order_refuses_a_closed_order(world: World) -> None:
    order = bid(world)
    world.exchange.send("cancelOrder", order.fields, sender=world.taker.address)
    with reverts("OrderFilledOrCancelled"):
        validate(world, order)


@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
def test_remaining_decreases_with_fills(world: World, profile: int) -> None:
    exchange: Contract = world.exchange
    order = bid(world, profile=profile)
    asks = [
        world.sell(maker, world.yes, 50 * UNIT, 50, profile=profile) for maker in world.makers[:2]
    ]
    assert exchange.call("remaining", order.fields) == 50 * UNIT
    world.match(order, asks[:1], Fill(25 * UNIT, (50 * UNIT,)))
    assert exchange.call("remaining", order.fields) == 25 * UNIT
    world.match(order, asks[1:], Fill(25 * UNIT, (50 * UNIT,)))
    assert exchange.call("remaining", order.fields) == 0


def test_remaining_of_an_order_with_an_old_nonce_is_zero(world: World) -> None:
    """ChainSecurity, CTF exchange, 6.13: the status of an order ignored its nonce."""
    order = bid(world)
    world.exchange.send("incrementNonce", sender=world.taker.address)
    assert world.exchange.call("remaining", order.fields) == 0
    assert world.exchange.call("remaining", replace(order, nonce=1).fields) == 50 * UNIT


def test_remaining_of_an_expired_order_is_zero(world: World) -> None:
    order = bid(world, expiration=world.evm.now() - 1)
    assert world.exchange.call("remaining", order.fields) == 0

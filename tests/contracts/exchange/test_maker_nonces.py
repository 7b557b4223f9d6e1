import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.signing import OWN_V2, UNIT


def test_increment_nonce_is_logged(world: World) -> None:
    maker = world.makers[0].address
    assert world.exchange.call("nonces", maker) == 0
    receipt = world.exchange.send("incrementNonce", sender=maker)
    assert world.exchange.logs(receipt, "NonceIncremented(address,uint256)") == [
        {"maker": maker, "nonce": 1}
    ]
    assert world.exchange.call("nonces", maker) == 1


@pytest.mark.parametrize("salt", [1, 2])
def test_increment_nonce_cancels_every_v1_order_of_the_caller(world: World, salt: int) -> None:
    maker = world.makers[0]
    ask = world.sell(maker, world.yes, UNIT, 50, salt=salt)
    world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    with reverts("InvalidNonce"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_increment_nonce_keeps_the_orders_of_other_makers(world: World) -> None:
    world.exchange.send("incrementNonce", sender=world.makers[0].address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [world.sell(world.makers[1], world.yes, UNIT, 50)], Fill(UNIT // 2, (UNIT,)))


def test_an_order_with_the_new_nonce_is_valid(world: World) -> None:
    maker = world.makers[0]
    world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(maker, world.yes, UNIT, 50, nonce=1)
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_a_v2_order_without_a_nonce_stays_valid(world: World) -> None:
    maker = world.makers[0]
    ask = world.sell(maker, world.yes, UNIT, 50, profile=OWN_V2)
    world.exchange.send("incrementNonce", sender=maker.address)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_increment_nonce_has_the_selector_of_clients(world: World) -> None:
    assert world.exchange.calldata("incrementNonce").hex() == "627cdcb9"

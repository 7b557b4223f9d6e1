import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import World
from tests.contracts.signing import BUY, OWN_V1, OWN_V2, SELL, UNIT, Order

AMOUNT_UNITS_MAX = 2**128 - 1


def validate(world: World, order: Order) -> None:
    world.exchange.call("validateOrder", order.fields, sender=world.operator)


@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
@pytest.mark.parametrize("side", [BUY, SELL])
@pytest.mark.parametrize(("given", "received"), [(0, 1), (1, 0), (0, 0), (2**256 - 1, 0)])
def test_a_zero_amount_is_refused(
    world: World, profile: int, side: int, given: int, received: int
) -> None:
    """ChainSecurity, CTF exchange, 6.16: an order with a zero amount crosses everything."""
    order = world.order(world.taker, side, world.yes, (given, received), profile=profile)
    with reverts("ZeroAmount"):
        validate(world, order)


@pytest.mark.parametrize(("side", "given", "received"), [(BUY, 2, 1), (SELL, 1, 2)])
@pytest.mark.parametrize("scale", [1, 10**6, AMOUNT_UNITS_MAX])
def test_no_price_is_above_one(
    world: World, side: int, given: int, received: int, scale: int
) -> None:
    order = world.order(world.taker, side, world.yes, (given * scale, received * scale))
    with reverts("PriceAboveOne"):
        validate(world, order)


@pytest.mark.parametrize("side", [BUY, SELL])
def test_a_price_may_be_one(world: World, side: int) -> None:
    validate(world, world.order(world.taker, side, world.yes, (UNIT, UNIT)))


@pytest.mark.case("B-04")
@pytest.mark.parametrize(
    ("side", "given", "received"),
    [
        (BUY, 1, AMOUNT_UNITS_MAX + 1),
        (SELL, AMOUNT_UNITS_MAX + 1, 1),
        (BUY, 2**256 - 2, 2**256 - 1),
        (SELL, 2**256 - 1, 2**256 - 2),
    ],
)
def test_amounts_have_a_limit(world: World, side: int, given: int, received: int) -> None:
    order = world.order(world.taker, side, world.yes, (given, received))
    with reverts("AmountTooLarge"):
        validate(world, order)


def test_the_greatest_amounts_are_valid(world: World) -> None:
    amounts = (AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX)
    validate(world, world.order(world.taker, BUY, world.yes, amounts))


@pytest.mark.parametrize("side", [2, 3, 255])
def test_there_are_two_sides(world: World, side: int) -> None:
    with reverts("InvalidSide"):
        validate(world, world.order(world.taker, side, world.yes, (UNIT, UNIT)))

import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.signing import UNIT, Order


@pytest.fixture
def bid(world: World) -> Order:
    return world.buy(world.taker, world.yes, 100 * UNIT, 50)


@pytest.fixture
def ask(world: World) -> Order:
    return world.sell(world.makers[0], world.yes, 100 * UNIT, 50)


def test_order_status_of_an_unseen_order_is_empty(world: World, bid: Order) -> None:
    assert world.exchange.call("orderStatus", world.hash(bid)) == (False, 0)


def test_order_status_has_the_remaining_amount_and_then_closed(
    world: World, bid: Order, ask: Order
) -> None:
    world.match(bid, [ask], Fill(20 * UNIT, (40 * UNIT,)))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (False, 30 * UNIT)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (False, 60 * UNIT)
    world.match(bid, [ask], Fill(30 * UNIT, (60 * UNIT,)))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (True, 0)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def test_no_order_is_filled_beyond_its_size(world: World, bid: Order, ask: Order) -> None:
    world.match(bid, [ask], Fill(25 * UNIT, (50 * UNIT,)))
    with reverts("MakingGtRemaining"):
        world.match(bid, [ask], Fill(25 * UNIT, (50 * UNIT + 1,)))
    with reverts("MakingGtRemaining"):
        world.match(bid, [ask], Fill(25 * UNIT + 1, (50 * UNIT,)))


def test_no_order_is_filled_beyond_its_size_within_one_match(
    world: World, bid: Order, ask: Order
) -> None:
    with reverts("MakingGtRemaining"):
        world.match(bid, [ask, ask], Fill(50 * UNIT, (60 * UNIT, 41 * UNIT)))


def test_one_order_may_be_filled_twice_within_one_match(
    world: World, bid: Order, ask: Order
) -> None:
    world.match(bid, [ask, ask], Fill(50 * UNIT, (60 * UNIT, 40 * UNIT)))
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def test_a_filled_order_is_not_filled_again(world: World, bid: Order, ask: Order) -> None:
    world.match(bid, [ask], Fill(50 * UNIT, (100 * UNIT,)))
    more = world.sell(world.makers[1], world.yes, UNIT, 50)
    with reverts("OrderFilledOrCancelled"):
        world.match(bid, [more], Fill(UNIT // 2, (UNIT,)))


@pytest.mark.parametrize(("taker", "maker"), [(0, 2), (1, 0), (0, 0)])
def test_a_zero_fill_is_refused(
    world: World, bid: Order, ask: Order, taker: int, maker: int
) -> None:
    with reverts("ZeroAmount"):
        world.match(bid, [ask], Fill(taker, (maker,)))


def test_the_remaining_amount_of_the_greatest_order_is_exact(world: World) -> None:
    greatest = 2**128 - 1
    bid = world.order(world.taker, 0, world.yes, (greatest, greatest))
    ask = world.order(world.makers[0], 1, world.yes, (greatest, greatest))
    world.match(bid, [ask], Fill(1, (1,)))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (False, greatest - 1)


def test_the_last_unit_of_an_order_can_be_filled(world: World, bid: Order, ask: Order) -> None:
    world.match(bid, [ask], Fill(50 * UNIT - 1, (100 * UNIT - 2,)))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (False, 1)
    world.match(bid, [ask], Fill(1, (2,)))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (True, 0)

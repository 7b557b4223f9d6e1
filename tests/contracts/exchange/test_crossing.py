import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import Reverted, reverts
from tests.contracts.market import Fill, World, match_args
from tests.contracts.signing import BUY, SELL, UNIT, Order

AMOUNT_UNITS_MAX = 2**128 - 1


@pytest.mark.parametrize(
    ("taker_side", "taker_cents", "maker_side", "maker_cents"),
    [
        pytest.param(BUY, 50, SELL, 50, id="bid meets ask"),
        pytest.param(BUY, 60, SELL, 50, id="bid above ask"),
        pytest.param(SELL, 50, BUY, 50, id="ask meets bid"),
        pytest.param(SELL, 40, BUY, 50, id="ask below bid"),
    ],
)
def test_opposite_sides_of_a_token_cross(
    world: World, taker_side: int, taker_cents: int, maker_side: int, maker_cents: int
) -> None:
    match_once(world, (taker_side, taker_cents), (maker_side, maker_cents))


@pytest.mark.parametrize(
    ("taker_side", "taker_cents", "maker_side", "maker_cents"),
    [
        pytest.param(BUY, 49, SELL, 50, id="bid below ask"),
        pytest.param(SELL, 51, BUY, 50, id="ask above bid"),
    ],
)
def test_opposite_sides_that_do_not_cross_are_refused(
    world: World, taker_side: int, taker_cents: int, maker_side: int, maker_cents: int
) -> None:
    with reverts("NotCrossing"):
        match_once(world, (taker_side, taker_cents), (maker_side, maker_cents))


@pytest.mark.parametrize("cents", [(50, 50), (60, 50), (1, 99), (99, 99)])
def test_two_bids_that_pay_for_a_complete_set_cross(world: World, cents: tuple[int, int]) -> None:
    match_once(world, (BUY, cents[0]), (BUY, cents[1]))


@pytest.mark.parametrize("cents", [(50, 49), (1, 98), (49, 50)])
def test_two_bids_that_pay_less_are_refused(world: World, cents: tuple[int, int]) -> None:
    with reverts("NotCrossing"):
        match_once(world, (BUY, cents[0]), (BUY, cents[1]))


@pytest.mark.parametrize("cents", [(50, 50), (40, 50), (1, 99), (1, 1)])
def test_two_asks_that_a_complete_set_pays_for_cross(world: World, cents: tuple[int, int]) -> None:
    match_once(world, (SELL, cents[0]), (SELL, cents[1]))


@pytest.mark.parametrize("cents", [(50, 51), (2, 99), (51, 50)])
def test_two_asks_above_a_complete_set_are_refused(world: World, cents: tuple[int, int]) -> None:
    with reverts("NotCrossing"):
        match_once(world, (SELL, cents[0]), (SELL, cents[1]))


def match_once(world: World, taker: tuple[int, int], maker: tuple[int, int]) -> None:
    """Match a hundred tokens of a taker and a maker, each with a side and a price in cents."""
    taker_side, taker_cents = taker
    maker_side, maker_cents = maker
    place = {BUY: world.buy, SELL: world.sell}
    maker_token = {True: world.no, False: world.yes}[taker_side == maker_side]
    taker_order = place[taker_side](world.taker, world.yes, 100 * UNIT, taker_cents)
    maker_order = place[maker_side](world.makers[0], maker_token, 100 * UNIT, maker_cents)
    fill = Fill(taker_order.maker_amount, (maker_order.maker_amount,))
    world.match(taker_order, [maker_order], fill)


@pytest.mark.case("B-05")
@pytest.mark.parametrize("taker_side", [BUY, SELL])
@pytest.mark.parametrize("maker_side", [BUY, SELL])
@pytest.mark.parametrize("token", ["same", "other"])
def test_impossible_combinations_of_sides_and_tokens_are_refused(
    world: World, taker_side: int, maker_side: int, token: str
) -> None:
    """ChainSecurity, CTF exchange, 6.5: nonsense combinations of side and asset matched."""
    sensible = {True: world.no, False: world.yes}[taker_side == maker_side]
    wrong = {
        "same": world.yes + world.no - sensible,
        "other": world.tokens_of(b"\1" * 32)[0],
    }
    taker = world.order(world.taker, taker_side, world.yes, (UNIT, UNIT))
    maker = world.order(world.makers[0], maker_side, wrong[token], (UNIT, UNIT))
    with reverts("MismatchedTokenIds"):
        world.match(taker, [maker], Fill(UNIT, (UNIT,)))


def is_refused_as_not_crossing(world: World, taker: Order, maker: Order) -> bool:
    """Return whether a match of one unit is refused with this error."""
    args = match_args(taker, [maker], Fill(1, (1,)))
    try:
        world.exchange.call("matchOrders", *args, sender=world.operator)
    except Reverted as refusal:
        return refusal.name == "NotCrossing"
    return False


prices = st.tuples(st.integers(1, 2**64), st.integers(1, 2**64)).filter(
    lambda pair: pair[0] < pair[1]
)
scales = st.integers(2, 2**63)
nudges = st.sampled_from((-1, 0, 1))


@given(price=prices, scale=scales, nudge=nudges)
def test_an_ask_crosses_a_bid_to_the_last_unit(
    world: World, price: tuple[int, int], scale: int, nudge: int
) -> None:
    cost, size = price
    bid = world.order(world.taker, BUY, world.yes, (cost, size))
    ask = world.order(world.makers[0], SELL, world.yes, (size * scale + nudge, cost * scale))
    assert is_refused_as_not_crossing(world, bid, ask) == (nudge < 0)
    assert is_refused_as_not_crossing(world, ask, bid) == (nudge < 0)


@given(price=prices, scale=scales, nudge=nudges)
def test_two_bids_cross_to_the_last_unit(
    world: World, price: tuple[int, int], scale: int, nudge: int
) -> None:
    cost, size = price
    bid = world.order(world.taker, BUY, world.yes, (cost, size))
    other = world.order(
        world.makers[0], BUY, world.no, ((size - cost) * scale + nudge, size * scale)
    )
    assert is_refused_as_not_crossing(world, bid, other) == (nudge < 0)


@given(price=prices, scale=scales, nudge=nudges)
def test_two_asks_cross_to_the_last_unit(
    world: World, price: tuple[int, int], scale: int, nudge: int
) -> None:
    cost, size = price
    ask = world.order(world.taker, SELL, world.yes, (size, cost))
    other = world.order(
        world.makers[0], SELL, world.no, (size * scale, (size - cost) * scale + nudge)
    )
    assert is_refused_as_not_crossing(world, ask, other) == (nudge > 0)


def test_a_taker_receives_no_more_than_an_amount_may_be(world: World) -> None:
    """Two fills of the greatest size would together exceed the range of amounts."""
    for maker in world.makers[:2]:
        world.endow(maker.address, sets=AMOUNT_UNITS_MAX)
    bid = world.order(world.taker, BUY, world.yes, (2, 2))
    asks = [
        world.order(maker, SELL, world.yes, (AMOUNT_UNITS_MAX, 1)) for maker in world.makers[:2]
    ]
    with reverts("AmountTooLarge"):
        world.match(bid, asks, Fill(2, (AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX)))

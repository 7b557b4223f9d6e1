"""Matching of an arriving order, and the amounts of each side."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import TOKEN, a_live_order, an_address

from foretell.domain.exchange.book import Book, LiveOrder, is_bid, price_in_yes
from foretell.domain.exchange.matching import (
    MatchPlan,
    MatchType,
    PlannedFill,
    Taker,
    fill_of,
    is_dust,
    match_type_of,
    plan_match,
    taker_cost_units,
)
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import exact_cost_units, lot_units, whole_lots_units

TICKS_PER_ONE = st.sampled_from([10, 20, 100, 1_000])


def a_taker(
    limit_ticks: int,
    size_units: int | None = None,
    budget_units: int | None = None,
    **fields: Any,
) -> Taker:
    side, is_yes = fields.get("side", Side.BUY), fields.get("is_yes", True)
    return Taker(
        maker=an_address(fields.get("maker", "carol")),
        side=side,
        is_yes=is_yes,
        is_bid=is_bid(side, is_yes=is_yes),
        yes_limit_ticks=price_in_yes(limit_ticks, fields.get("ticks_per_one", 100), is_yes=is_yes),
        size_units=size_units,
        budget_units=budget_units,
    )


def a_seller(name: str, price_ticks: int, size_units: int, maker: str = "bob") -> LiveOrder:
    return a_live_order(name, price_ticks, size_units, side=Side.SELL, maker=an_address(maker))


def plan_against(taker: Taker, *orders: LiveOrder) -> MatchPlan:
    book = Book(100)
    for order in orders:
        book.add(order)
    return plan_match(book, taker)


def sizes(plan: MatchPlan) -> list[int]:
    return [fill.size_units for fill in plan.fills]


@pytest.mark.parametrize(
    ("taker", "maker", "kind"),
    [
        (Side.BUY, Side.SELL, MatchType.COMPLEMENTARY),
        (Side.SELL, Side.BUY, MatchType.COMPLEMENTARY),
        (Side.BUY, Side.BUY, MatchType.MINT),
        (Side.SELL, Side.SELL, MatchType.MERGE),
    ],
)
def test_the_sides_give_the_match_type(taker: Side, maker: Side, kind: MatchType) -> None:
    assert match_type_of(taker, maker) is kind


def test_an_empty_book_gives_no_fill() -> None:
    plan = plan_against(a_taker(99, 10 * TOKEN))
    assert plan == MatchPlan([], 0, is_exhausted=False, own_orders=[], dust_orders=[])
    assert not plan.crosses


def test_no_order_beyond_the_limit_is_met() -> None:
    assert not plan_against(a_taker(59, 10 * TOKEN), a_seller("a", 60, TOKEN)).crosses


def test_the_better_price_is_met_first_at_its_own_price() -> None:
    dear, cheap = a_seller("dear", 60, 100), a_seller("cheap", 40, 100)
    plan = plan_against(a_taker(60, 150), dear, cheap)
    assert plan.fills == [PlannedFill(cheap, 100), PlannedFill(dear, 50)]
    assert (plan.size_units, plan.is_exhausted, plan.crosses) == (150, True, True)


def test_a_plan_changes_nothing() -> None:
    order = a_seller("a", 40, 100)
    plan_against(a_taker(60, 150), order)
    assert order.remaining_units == 100


def test_a_taker_that_empties_the_book_is_not_exhausted() -> None:
    plan = plan_against(a_taker(60, 150), a_seller("a", 50, 100))
    assert (sizes(plan), plan.is_exhausted) == ([100], False)


@pytest.mark.parametrize(
    ("size_units", "taken"), [(100, 100), (101, 100), (199, 100), (200, 200), (99, 0)]
)
def test_a_taker_takes_whole_lots_and_is_then_exhausted(size_units: int, taken: int) -> None:
    """A lot at 33 of 100 is 100 units."""
    plan = plan_against(a_taker(50, size_units), a_seller("a", 33, 1_000))
    assert (plan.size_units, plan.is_exhausted) == (taken, True)


def test_a_remainder_below_a_lot_does_not_skip_the_order_in_front() -> None:
    """Fifty units are a lot at 50, but the order at 33 is first."""
    plan = plan_against(a_taker(50, 150), a_seller("a", 33, 200), a_seller("b", 50, 200))
    assert (sizes(plan), plan.is_exhausted) == ([100], True)


def test_a_remainder_below_a_lot_meets_the_next_price_with_a_smaller_lot() -> None:
    plan = plan_against(a_taker(50, 150), a_seller("a", 33, 100), a_seller("b", 50, 200))
    assert (sizes(plan), plan.is_exhausted) == ([100, 50], True)


def test_a_remainder_below_a_lot_is_exhausted_when_the_book_ends() -> None:
    plan = plan_against(a_taker(50, 150), a_seller("a", 33, 100))
    assert (sizes(plan), plan.is_exhausted) == ([100], True)


@pytest.mark.parametrize(
    ("budget_units", "taken"), [(33, 100), (32, 0), (65, 100), (66, 200), (1_000_000, 3_030_300)]
)
def test_a_budget_buys_the_lots_that_it_covers_and_is_then_exhausted(
    budget_units: int, taken: int
) -> None:
    plan = plan_against(a_taker(50, None, budget_units), a_seller("a", 33, 10**7))
    assert (plan.size_units, plan.is_exhausted) == (taken, True)


def test_a_budget_buys_more_tokens_where_they_are_cheaper() -> None:
    orders = a_seller("a", 25, 400), a_seller("b", 50, 400)
    plan = plan_against(a_taker(50, None, 200), *orders)
    assert (sizes(plan), plan.is_exhausted) == ([400, 200], True)


@pytest.mark.parametrize(("budget_units", "is_exhausted"), [(200, True), (201, False)])
def test_a_budget_larger_than_the_book_is_not_exhausted(
    budget_units: int, *, is_exhausted: bool
) -> None:
    plan = plan_against(a_taker(50, None, budget_units), a_seller("a", 50, 400))
    assert (sizes(plan), plan.is_exhausted) == ([400], is_exhausted)


@pytest.mark.parametrize(("left", "is_left_as_dust"), [(0, False), (1, True), (99, True)])
def test_a_maker_with_less_than_a_lot_left_is_dust(left: int, *, is_left_as_dust: bool) -> None:
    maker = a_seller("a", 33, 200 + left)
    plan = plan_against(a_taker(50, 10_000), maker)
    assert sizes(plan) == [200]
    assert plan.dust_orders == [maker] * is_left_as_dust


def test_a_maker_with_a_lot_left_is_no_dust() -> None:
    plan = plan_against(a_taker(50, 100), a_seller("a", 33, 200))
    assert (sizes(plan), plan.dust_orders) == ([100], [])


def test_a_resting_order_below_a_lot_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="no dust rests"):
        plan_against(a_taker(50, 1_000), a_seller("a", 33, 99))


def test_orders_of_the_same_wallet_are_skipped_and_listed() -> None:
    own, other = a_seller("own", 40, 100, "carol"), a_seller("other", 41, 100)
    behind = a_seller("own behind", 50, 100, "carol")
    plan = plan_against(a_taker(60, 100), own, other, behind)
    assert (plan.fills, plan.own_orders) == ([PlannedFill(other, 100)], [own])


def test_an_order_of_the_same_wallet_is_met_through_the_complement_too() -> None:
    own = a_live_order("own", 45, 100, side=Side.BUY, is_yes=False, maker=an_address("carol"))
    plan = plan_against(a_taker(60, 100), own)
    assert (plan.fills, plan.own_orders, plan.crosses) == ([], [own], True)


def test_an_order_of_the_same_wallet_beyond_the_limit_stays() -> None:
    plan = plan_against(a_taker(60, 100), a_seller("own", 61, 100, "carol"))
    assert (plan.own_orders, plan.crosses) == ([], False)


@st.composite
def fills(draw: st.DrawFn) -> tuple[LiveOrder, Side, int, int]:
    """A resting order, the side of its taker, the size of the fill, and the ticks of one."""
    ticks_per_one = draw(TICKS_PER_ONE)
    price_ticks = draw(st.integers(1, ticks_per_one - 1))
    lots = draw(st.integers(1, 10**9))
    units = lots * lot_units(price_ticks, ticks_per_one)
    order = a_live_order(
        price_ticks=price_ticks,
        size_units=units + draw(st.integers(0, 10)),
        side=draw(st.sampled_from(Side)),
        is_yes=draw(st.booleans()),
        ticks_per_one=ticks_per_one,
    )
    return order, draw(st.sampled_from(Side)), units, ticks_per_one


@given(fills())
def test_a_fill_conserves_every_unit(case: tuple[LiveOrder, Side, int, int]) -> None:
    """A trade moves the cost across; a mint costs both one collateral a token; a merge pays it."""
    order, taker_side, units, ticks_per_one = case
    fill = fill_of(PlannedFill(order, units), taker_side, ticks_per_one)
    taker_cost = taker_cost_units(fill)
    paid_by_maker = fill.making_units if fill.side is Side.BUY else -fill.taking_units
    whole = {MatchType.COMPLEMENTARY: 0, MatchType.MINT: units, MatchType.MERGE: -units}
    paid_by_taker = taker_cost if taker_side is Side.BUY else -taker_cost
    assert paid_by_maker + paid_by_taker == whole[fill.match_type]
    assert taker_cost > 0


@given(fills())
def test_a_maker_gives_and_receives_by_its_own_price(
    case: tuple[LiveOrder, Side, int, int],
) -> None:
    order, taker_side, units, ticks_per_one = case
    fill = fill_of(PlannedFill(order, units), taker_side, ticks_per_one)
    cost = exact_cost_units(units, order.price_ticks, ticks_per_one)
    gives, gets = (cost, units) if order.side is Side.BUY else (units, cost)
    assert (fill.making_units, fill.taking_units) == (gives, gets)
    assert (fill.maker_order_id, fill.maker, fill.owner) == (
        order.order_id,
        order.maker,
        order.owner,
    )
    assert (fill.price_ticks, fill.side, fill.is_yes) == (
        order.price_ticks,
        order.side,
        order.is_yes,
    )


@st.composite
def matches(draw: st.DrawFn) -> tuple[Book, Taker, int]:
    """A book of whole lots, and a taker of either kind."""
    ticks_per_one = draw(TICKS_PER_ONE)
    prices = st.integers(1, ticks_per_one - 1)
    book = Book(ticks_per_one)
    side, is_yes = draw(st.sampled_from(Side)), draw(st.booleans())
    for number, (price_ticks, lots, is_other) in enumerate(
        draw(st.lists(st.tuples(prices, st.integers(1, 20), st.booleans()), max_size=8))
    ):
        order = a_live_order(
            f"{number}",
            price_ticks,
            lots * lot_units(price_ticks, ticks_per_one) + draw(st.integers(0, 5)),
            side=Side(1 - side) if is_other else side,
            is_yes=is_yes if is_other else not is_yes,
            ticks_per_one=ticks_per_one,
            maker=an_address(draw(st.sampled_from(["bob", "carol"]))),
        )
        book.add(order)
    size_units = draw(st.integers(1, 3_000))
    has_budget = side is Side.BUY and draw(st.booleans())
    amounts = (None, size_units) if has_budget else (size_units, None)
    fields = {"side": side, "is_yes": is_yes, "ticks_per_one": ticks_per_one}
    return book, a_taker(draw(prices), *amounts, **fields), ticks_per_one


@given(matches())
def test_no_plan_is_worse_than_the_limit_or_larger_than_the_order(
    case: tuple[Book, Taker, int],
) -> None:
    book, taker, ticks_per_one = case
    plan = plan_match(book, taker)
    filled = [fill_of(each, taker.side, ticks_per_one) for each in plan.fills]
    limit = price_in_yes(taker.yes_limit_ticks, ticks_per_one, is_yes=taker.is_yes)
    cost = sum(taker_cost_units(fill) for fill in filled)
    at_limit = plan.size_units * limit
    better = at_limit - cost * ticks_per_one
    assert better >= 0 if taker.side is Side.BUY else better <= 0
    assert plan.size_units == sum(sizes(plan))
    asked, used = (
        (taker.size_units, plan.size_units)
        if taker.budget_units is None
        else (taker.budget_units, cost)
    )
    assert asked is not None
    assert used <= asked


@given(matches())
def test_after_a_plan_nothing_could_still_trade(
    case: tuple[Book, Taker, int],
) -> None:
    book, taker, _ = case
    plan = plan_match(book, taker)
    taken = {fill.order.order_id: fill.size_units for fill in plan.fills}
    gone = {order.order_id for order in [*plan.own_orders, *plan.dust_orders]}
    waiting = [
        order
        for order in book.opposite(taker.yes_limit_ticks, taker_is_bid=taker.is_bid)
        if order.order_id not in gone and order.remaining_units > taken.get(order.order_id, 0)
    ]
    assert plan.is_exhausted or not waiting


@pytest.mark.parametrize(
    ("units", "price_ticks", "is_too_little"), [(99, 33, True), (100, 33, False), (1, 50, True)]
)
def test_a_size_below_a_lot_is_dust(units: int, price_ticks: int, *, is_too_little: bool) -> None:
    assert is_dust(units, price_ticks, 100) is is_too_little


@given(st.integers(0, 10**6), st.integers(1, 99))
def test_dust_has_no_whole_lot(units: int, price_ticks: int) -> None:
    assert is_dust(units, price_ticks, 100) == (whole_lots_units(units, price_ticks, 100) == 0)

"""Matching of an arriving order, planned or at once, and the amounts of each side."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.domain.exchange.reference.resting import NamedOrder, an_order, rested
from tests.rigs.values import a_word, an_address

from foretell.domain.exchange.book import Book, BookSide, Match
from foretell.domain.exchange.matching import (
    Fill,
    MatchType,
    Taker,
    carry_out,
    match_type_of,
    plan_match,
    taker_cost_units,
)
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import exact_cost_units, lot_units

TOKEN = 10**6
TICKS_PER_ONE = st.sampled_from([10, 20, 100, 1_000])

NamedBook = Book[NamedOrder]


def a_seller(
    book: NamedBook, name: str, price_ticks: int, size_units: int, wallet: str = "bob"
) -> NamedOrder:
    order = an_order(book, name, price_ticks, size_units, is_bid=False, wallet=wallet)
    return rested(order)[0]


def a_taker(
    book: NamedBook,
    limit_ticks: int,
    size_units: int | None = None,
    budget_units: int | None = None,
) -> Taker:
    """Return a buyer of yes whose wallet is carol's."""
    limit_rank = book.ticks_per_one - limit_ticks
    return Taker("carol", True, limit_rank, size_units, budget_units)  # noqa: FBT003 - fields of a row


def plan_against(
    limit_ticks: int,
    size_units: int | None,
    *sellers: tuple[Any, ...],
    budget_units: int | None = None,
) -> Match[NamedOrder]:
    """Return what a buyer of yes meets; a sized one is also matched at once, with the same result."""
    book = NamedBook(100)
    for number, seller in enumerate(sellers):
        a_seller(book, f"{number}", *seller)
    taker = a_taker(book, limit_ticks, size_units, budget_units)
    plan = plan_match(book.asks, taker)
    if size_units is not None:
        other = copy.deepcopy(book)
        taken = other.asks.take(taker.limit_rank, "carol", size_units)
        assert seen(taken) == seen(plan)
        carry_out(book.asks, plan)
        assert left_in(other) == left_in(book)
    return plan


def seen(match: Match[NamedOrder]) -> tuple[Any, ...]:
    """Return a match by the names of its orders."""
    fills = [(order.name, units) for order, units in match.fills]
    own, dust = ([order.name for order in those] for those in (match.own_orders, match.dust_orders))
    return fills, match.left_units, match.is_exhausted, own, dust, match.crosses


def left_in(book: NamedBook) -> tuple[Any, ...]:
    """Return all that a book has."""
    orders = [(order.name, order.remaining_units) for order in book.orders()]
    levels = [*book.bids.usedlevels(), *book.asks.usedlevels()]
    dust = [level.dust_units for level in levels]
    return orders, book.levels(is_bid=True), book.levels(is_bid=False), dust


def sizes(match: Match[NamedOrder]) -> list[int]:
    return [units for _, units in match.fills]


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
    assert seen(plan_against(99, 10 * TOKEN)) == ([], 10 * TOKEN, False, [], [], False)


def test_no_order_beyond_the_limit_is_met() -> None:
    assert not plan_against(59, 10 * TOKEN, (60, TOKEN)).crosses


def test_the_better_price_is_met_first_at_its_own_price() -> None:
    match = plan_against(60, 150, (60, 100), (40, 100))
    assert seen(match) == ([("1", 100), ("0", 50)], 0, True, [], [], True)


def test_a_plan_changes_nothing() -> None:
    book = NamedBook(100)
    order = a_seller(book, "a", 40, 100)
    plan_match(book.asks, a_taker(book, 60, 150))
    assert order.remaining_units == 100
    assert list(book.orders()) == [order]


def test_a_taker_that_empties_the_book_is_not_exhausted() -> None:
    match = plan_against(60, 150, (50, 100))
    assert (sizes(match), match.is_exhausted) == ([100], False)


@pytest.mark.parametrize(
    ("size_units", "taken"), [(100, [100]), (101, [100]), (199, [100]), (200, [200]), (99, [])]
)
def test_a_taker_takes_whole_lots_and_is_then_exhausted(size_units: int, taken: list[int]) -> None:
    """A lot at 33 of 100 is 100 units."""
    match = plan_against(50, size_units, (33, 1_000))
    assert (sizes(match), match.is_exhausted) == (taken, True)


def test_a_remainder_below_a_lot_does_not_skip_the_order_in_front() -> None:
    """Fifty units are a lot at 50, but the order at 33 is first."""
    match = plan_against(50, 150, (33, 200), (50, 200))
    assert (sizes(match), match.is_exhausted) == ([100], True)


def test_a_remainder_below_a_lot_meets_the_next_price_with_a_smaller_lot() -> None:
    match = plan_against(50, 150, (33, 100), (50, 200))
    assert (sizes(match), match.is_exhausted) == ([100, 50], True)


def test_a_remainder_below_a_lot_is_exhausted_when_the_book_ends() -> None:
    match = plan_against(50, 150, (33, 100))
    assert (sizes(match), match.is_exhausted) == ([100], True)


def test_a_remainder_below_a_lot_stays_exhausted_when_only_own_orders_follow() -> None:
    match = plan_against(50, 150, (33, 100), (50, 200, "carol"))
    assert seen(match) == ([("0", 100)], 50, True, ["1"], [], True)


@pytest.mark.parametrize(
    ("budget_units", "taken"),
    [(33, [100]), (32, []), (65, [100]), (66, [200]), (1_000_000, [3_030_300])],
)
def test_a_budget_buys_the_lots_that_it_covers_and_is_then_exhausted(
    budget_units: int, taken: list[int]
) -> None:
    match = plan_against(50, None, (33, 10**7), budget_units=budget_units)
    assert (sizes(match), match.is_exhausted) == (taken, True)
    assert match.left_units == budget_units - sum(taken) * 33 // 100


def test_a_budget_buys_more_tokens_where_they_are_cheaper() -> None:
    match = plan_against(50, None, (25, 400), (50, 400), budget_units=200)
    assert (sizes(match), match.is_exhausted) == ([400, 200], True)


@pytest.mark.parametrize(("budget_units", "is_exhausted"), [(200, True), (201, False)])
def test_a_budget_larger_than_the_book_is_not_exhausted(
    budget_units: int, *, is_exhausted: bool
) -> None:
    match = plan_against(50, None, (50, 400), budget_units=budget_units)
    assert (sizes(match), match.is_exhausted) == ([400], is_exhausted)


@pytest.mark.parametrize(("left", "is_left_as_dust"), [(0, False), (1, True), (99, True)])
def test_a_maker_with_less_than_a_lot_left_is_dust(left: int, *, is_left_as_dust: bool) -> None:
    match = plan_against(50, 10_000, (33, 200 + left))
    assert sizes(match) == [200]
    assert [order.name for order in match.dust_orders] == ["0"] * is_left_as_dust


def test_a_maker_with_a_lot_left_is_no_dust() -> None:
    match = plan_against(50, 100, (33, 200))
    assert (sizes(match), match.dust_orders) == ([100], [])


def test_a_resting_order_below_a_lot_is_an_assertion_error() -> None:
    book = NamedBook(100)
    a_seller(book, "a", 33, 99)
    with pytest.raises(AssertionError, match="no dust rests"):
        plan_match(book.asks, a_taker(book, 50, 1_000))
    with pytest.raises(AssertionError, match="no dust rests"):
        book.asks.take(50, "carol", 1_000)


def test_orders_of_the_same_wallet_are_skipped_and_listed() -> None:
    match = plan_against(60, 100, (40, 100, "carol"), (41, 100), (50, 100, "carol"))
    assert seen(match) == ([("1", 100)], 0, True, ["0"], [], True)


def test_an_order_of_the_same_wallet_alone_crosses_too() -> None:
    assert seen(plan_against(60, 100, (55, 100, "carol"))) == ([], 100, False, ["0"], [], True)


def test_an_order_of_the_same_wallet_beyond_the_limit_stays() -> None:
    match = plan_against(60, 100, (61, 100, "carol"))
    assert (match.own_orders, match.crosses) == ([], False)


@given(
    maker=st.sampled_from(Side),
    taker=st.sampled_from(Side),
    price_ticks=st.integers(1, 99),
    lots=st.integers(1, 10**9),
)
def test_a_takers_cost_and_its_makers_cover_whole_tokens(
    maker: Side, taker: Side, price_ticks: int, lots: int
) -> None:
    """A trade moves the cost across; a mint costs both one collateral a token; a merge pays it."""
    units = lots * lot_units(price_ticks, 100)
    cost = exact_cost_units(units, price_ticks, 100)
    making, taking = (cost, units) if maker is Side.BUY else (units, cost)
    kind = match_type_of(taker, maker)
    fill = Fill(
        a_word("order"),
        an_address("bob"),
        "key",
        maker,
        True,  # noqa: FBT003 - a field of a row
        price_ticks,
        units,
        making,
        taking,
        kind,
    )
    taker_cost = taker_cost_units(fill)
    paid_by_maker = cost if maker is Side.BUY else -cost
    paid_by_taker = taker_cost if taker is Side.BUY else -taker_cost
    whole = {MatchType.COMPLEMENTARY: 0, MatchType.MINT: units, MatchType.MERGE: -units}
    assert paid_by_maker + paid_by_taker == whole[kind]
    assert taker_cost > 0


@st.composite
def matches(draw: st.DrawFn) -> tuple[NamedBook, Taker]:
    """A book of bids or asks, and a taker of either kind."""
    ticks_per_one = draw(TICKS_PER_ONE)
    prices = st.integers(1, ticks_per_one - 1)
    book, is_bid = NamedBook(ticks_per_one), draw(st.booleans())
    for number, (price_ticks, lots, is_own) in enumerate(
        draw(st.lists(st.tuples(prices, st.integers(1, 20), st.booleans()), max_size=8))
    ):
        size_units = lots * lot_units(price_ticks, ticks_per_one) + draw(st.integers(0, 5))
        wallet = "carol" if is_own else "bob"
        rested(
            an_order(book, f"{number}", price_ticks, size_units, is_bid=is_bid, wallet=wallet),
        )
    size_units, is_buy = draw(st.integers(1, 3_000)), draw(st.booleans())
    has_budget = is_buy and draw(st.booleans())
    amounts = (None, size_units) if has_budget else (size_units, None)
    return book, Taker("carol", is_buy, draw(prices), *amounts)


def side_of(book: NamedBook) -> BookSide[NamedOrder]:
    """Return the side with orders."""
    return book.bids if book.bids.best_rank else book.asks


def cost_of(match: Match[NamedOrder], taker: Taker, ticks_per_one: int) -> int:
    """Return what the taker pays or receives: the other token's price at a level is its rank."""
    ranks = [(order.level.rank, units) for order, units in match.fills]
    prices = [(ticks_per_one - rank if taker.is_buy else rank, units) for rank, units in ranks]
    return sum(exact_cost_units(units, price, ticks_per_one) for price, units in prices)


@given(matches())
def test_no_plan_is_worse_than_the_limit_or_larger_than_the_order(
    case: tuple[NamedBook, Taker],
) -> None:
    book, taker = case
    ticks_per_one = book.ticks_per_one
    plan = plan_match(side_of(book), taker)
    cost, size = cost_of(plan, taker, ticks_per_one), sum(sizes(plan))
    limit = ticks_per_one - taker.limit_rank if taker.is_buy else taker.limit_rank
    better = size * limit - cost * ticks_per_one
    assert better >= 0 if taker.is_buy else better <= 0
    asked, used = (
        (taker.budget_units, cost) if taker.size_units is None else (taker.size_units, size)
    )
    assert asked is not None
    assert plan.left_units == asked - used >= 0


@given(matches())
def test_after_a_plan_nothing_could_still_trade(case: tuple[NamedBook, Taker]) -> None:
    book, taker = case
    plan = plan_match(side_of(book), taker)
    taken = {order.name: units for order, units in plan.fills}
    gone = {order.name for order in [*plan.own_orders, *plan.dust_orders]}
    waiting = [
        order
        for order in side_of(book).walk(taker.limit_rank)
        if order.name not in gone and order.remaining_units > taken.get(order.name, 0)
    ]
    assert plan.is_exhausted or not waiting


@given(matches())
def test_a_match_at_once_is_the_plan_carried_out(case: tuple[NamedBook, Taker]) -> None:
    """Only an order with a size may rest; one with a budget is always planned."""
    book, taker = case
    assume(taker.size_units is not None)
    assert taker.size_units is not None
    other = copy.deepcopy(book)
    plan = plan_match(side_of(book), taker)
    carry_out(side_of(book), plan)
    check_dust(book)
    taken = side_of(other).take(taker.limit_rank, "carol", taker.size_units)
    check_dust(other)
    assert seen(taken) == seen(plan)
    assert left_in(other) == left_in(book)


def check_dust(book: NamedBook) -> None:
    """Compare the dust of each level with that of its orders."""
    for side in (book.bids, book.asks):
        for level in filter(None, side.levels):
            orders = [order for order in side.walk(1) if order.level is level]
            dust = sum(order.remaining_units % level.lot_units for order in orders)
            assert level.dust_units == dust


class Unsearchable(list[NamedOrder]):
    """A list in which nothing is searched for: that would take as long as it is."""

    __contains__ = None  # type: ignore[assignment]


def test_a_plan_with_much_dust_is_carried_out_without_a_search() -> None:
    book = NamedBook(100)
    for number in range(3):
        a_seller(book, f"{number}", 33, 150)
    plan = plan_match(book.asks, a_taker(book, 50, 250))
    assert len(plan.dust_orders) == 2
    carry_out(book.asks, msgspec.structs.replace(plan, dust_orders=Unsearchable(plan.dust_orders)))
    assert left_in(book)[0] == [("2", 150)]

"""Price-time priority in a book for both tokens of a condition."""

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.exchange.reference.resting import NamedOrder, an_order, rested

from foretell.domain.exchange.book import Book, LevelSize, is_bid, price_in_yes
from foretell.domain.exchange.order import Side

TICKS_PER_ONE = 10

NamedBook = Book[NamedOrder]


def a_bid(book: NamedBook, name: str, price_ticks: int = 50, size_units: int = 100) -> NamedOrder:
    return rested(an_order(book, name, price_ticks, size_units))[0]


def an_ask(book: NamedBook, name: str, price_ticks: int = 60, size_units: int = 100) -> NamedOrder:
    return rested(an_order(book, name, price_ticks, size_units, is_bid=False))[0]


def met(book: NamedBook, limit_ticks: int, *, taker_is_bid: bool) -> list[NamedOrder]:
    """Return the orders that a taker with this limit, a price of yes, crosses."""
    limit_rank = book.ticks_per_one - limit_ticks if taker_is_bid else limit_ticks
    return list(book.side(is_bid=not taker_is_bid).walk(limit_rank))


@pytest.mark.parametrize(
    ("side", "is_yes", "wants_yes_to_rise"),
    [
        (Side.BUY, True, True),
        (Side.BUY, False, False),
        (Side.SELL, True, False),
        (Side.SELL, False, True),
    ],
)
def test_buying_yes_and_selling_no_are_bids(
    *, side: Side, is_yes: bool, wants_yes_to_rise: bool
) -> None:
    assert is_bid(side, is_yes=is_yes) is wants_yes_to_rise


@given(price_ticks=st.integers(1, 99), is_yes=st.booleans())
def test_a_price_converted_to_yes_twice_is_itself(*, price_ticks: int, is_yes: bool) -> None:
    turned = price_in_yes(price_ticks, 100, is_yes=is_yes)
    assert price_in_yes(turned, 100, is_yes=is_yes) == price_ticks
    assert turned == (price_ticks if is_yes else 100 - price_ticks)


def test_an_empty_book_has_no_best_prices() -> None:
    book = NamedBook(100)
    assert (book.best_bid(), book.best_ask()) == (None, None)
    assert list(book.orders()) == []


@pytest.mark.parametrize(("limit", "names"), [(59, []), (60, ["b", "a"]), (61, ["b", "a", "c"])])
def test_a_buyer_meets_the_lowest_ask_then_the_oldest(limit: int, names: list[str]) -> None:
    book = NamedBook(100)
    for name, price_ticks in (("c", 61), ("b", 60), ("a", 60), ("d", 99)):
        an_ask(book, name, price_ticks)
    assert [order.name for order in met(book, limit, taker_is_bid=True)] == names


@pytest.mark.parametrize(("limit", "names"), [(51, []), (50, ["b", "a"]), (49, ["b", "a", "c"])])
def test_a_seller_meets_the_highest_bid_then_the_oldest(limit: int, names: list[str]) -> None:
    book = NamedBook(100)
    for name, price_ticks in (("c", 49), ("b", 50), ("a", 50), ("d", 1)):
        a_bid(book, name, price_ticks)
    assert [order.name for order in met(book, limit, taker_is_bid=False)] == names


def test_a_part_filled_order_keeps_its_place() -> None:
    book = NamedBook(100)
    first, second = a_bid(book, "first"), a_bid(book, "second")
    book.bids.reduce(first, 60)
    assert met(book, 1, taker_is_bid=False) == [first, second]
    assert first.remaining_units == 40
    assert book.levels(is_bid=True) == [LevelSize(50, 140)]


def test_a_level_knows_what_its_orders_have_beyond_whole_lots() -> None:
    """A lot at 33 of 100 is 100 units."""
    book = NamedBook(100)
    first, second = a_bid(book, "first", 33, 250), a_bid(book, "second", 33, 130)
    level = first.level
    assert (level.size_units, level.dust_units) == (380, 80)
    between = an_order(book, "between", 33, 199)
    book.bids.insert(between, first)
    assert (level.size_units, level.dust_units) == (579, 179)
    book.bids.reduce(first, 100)
    assert (level.size_units, level.dust_units) == (479, 179)
    book.bids.enlarge(second, 90)
    assert (second.remaining_units, level.size_units, level.dust_units) == (220, 569, 169)
    book.bids.remove(between)
    assert (level.size_units, level.dust_units) == (370, 70)
    assert met(book, 1, taker_is_bid=False) == [first, second]


def test_a_tick_that_becomes_finer_changes_no_dust() -> None:
    book = NamedBook(100)
    order = a_bid(book, "first", 33, 250)
    book.change_tick(1_000)
    assert (order.level.lot_units, order.level.dust_units) == (100, 50)


@pytest.mark.parametrize("units", [-1, 0, 100, 101])
def test_a_reduction_is_positive_and_less_than_the_order(units: int) -> None:
    book = NamedBook(100)
    with pytest.raises(AssertionError):
        book.bids.reduce(a_bid(book, "first"), units)


@pytest.mark.parametrize("gone", range(4))
def test_a_removed_order_leaves_the_queue_of_the_others_unchanged(gone: int) -> None:
    book = NamedBook(100)
    orders = [a_bid(book, f"{number}") for number in range(4)]
    book.bids.remove(orders[gone])
    left = [order for number, order in enumerate(orders) if number != gone]
    assert met(book, 1, taker_is_bid=False) == left
    assert (orders[gone].previous, orders[gone].next) == (None, None)
    assert book.levels(is_bid=True) == [LevelSize(50, 300)]


def test_an_order_added_again_goes_to_the_end() -> None:
    book = NamedBook(100)
    first, second = an_ask(book, "first"), an_ask(book, "second")
    book.asks.remove(first)
    book.asks.add(first)
    assert met(book, 99, taker_is_bid=True) == [second, first]


def test_an_order_is_inserted_first_between_others_and_last() -> None:
    book = NamedBook(100)
    first, second, third = (an_ask(book, name) for name in ("first", "second", "third"))
    for order in (first, second, third):
        book.asks.remove(order)
    book.asks.insert(third, None)
    book.asks.insert(first, None)
    book.asks.insert(second, first)
    assert met(book, 99, taker_is_bid=True) == [first, second, third]
    book.asks.remove(third)
    book.asks.insert(third, second)
    assert met(book, 99, taker_is_bid=True) == [first, second, third]


def test_the_best_prices_move_as_levels_empty_and_fill() -> None:
    book = NamedBook(100)
    _, high = a_bid(book, "low", 20), a_bid(book, "high", 40)
    cheap, _ = an_ask(book, "cheap", 60), an_ask(book, "dear", 80)
    assert (book.best_bid(), book.best_ask()) == (40, 60)
    book.bids.remove(high)
    book.asks.remove(cheap)
    assert (book.best_bid(), book.best_ask()) == (20, 80)
    book.bids.add(high)
    book.asks.add(cheap)
    assert (book.best_bid(), book.best_ask()) == (40, 60)
    assert book.levels(is_bid=True) == [LevelSize(40, 100), LevelSize(20, 100)]
    assert book.levels(is_bid=False) == [LevelSize(60, 100), LevelSize(80, 100)]


@pytest.mark.parametrize("price_ticks", [1, 9_999])
def test_the_outermost_prices_have_levels(price_ticks: int) -> None:
    book = NamedBook(10_000)
    bid = a_bid(book, "bid", price_ticks)
    assert book.best_bid() == price_ticks
    assert met(book, 1, taker_is_bid=False) == [bid]
    book.bids.remove(bid)
    assert book.best_bid() is None


def test_an_order_cannot_be_removed_twice() -> None:
    book = NamedBook(100)
    first, _ = a_bid(book, "first"), a_bid(book, "second")
    book.bids.remove(first)
    with pytest.raises(AssertionError, match="in the book"):
        book.bids.remove(first)


@pytest.mark.parametrize("bid_is_first", [True, False])
def test_an_order_that_crosses_another_cannot_be_added(*, bid_is_first: bool) -> None:
    book = NamedBook(100)
    sides = (bid_is_first, not bid_is_first)
    first, second = (an_order(book, f"{side}", 50, is_bid=side) for side in sides)
    rested(first)
    with pytest.raises(AssertionError, match="no bid crosses an ask"):
        rested(second)


class WatchedOrder(NamedOrder):
    """An order that counts the reads of its fields."""

    looks: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:  # type: ignore[explicit-override] # 3.11 has none
        WatchedOrder.looks.append(name)
        return super().__getattribute__(name)


def looks_to_remove_the_middle_of(size: int) -> int:
    book = NamedBook(100)
    orders: list[NamedOrder] = [WatchedOrder() for _ in range(size)]
    for order in orders:
        order.remaining_units, order.level = 100, book.bids.level(50)
        rested(order)
    WatchedOrder.looks.clear()
    book.bids.remove(orders[size // 2])
    return len(WatchedOrder.looks)


def test_a_cancel_reads_as_many_orders_in_a_long_queue_as_in_a_short_one() -> None:
    assert looks_to_remove_the_middle_of(3_000) == looks_to_remove_the_middle_of(3)


def test_a_finer_tick_keeps_prices_queues_and_the_best() -> None:
    book = NamedBook(10)
    orders = [a_bid(book, "low", 2), a_bid(book, "gone", 4), an_ask(book, "ask", 7)]
    book.bids.remove(orders[1])
    book.change_tick(1_000)
    assert (book.best_bid(), book.best_ask()) == (200, 700)
    assert [order.level.yes_price_ticks for order in book.orders()] == [200, 700]
    newer = rested(an_order(book, "newer", 200), an_order(book, "between", 201))
    assert met(book, 1, taker_is_bid=False) == [newer[1], orders[0], newer[0]]
    book.bids.remove(newer[1])
    assert book.best_bid() == 200


def test_a_tick_that_is_not_finer_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="finer"):
        NamedBook(10).change_tick(15)


MOVES = st.tuples(
    st.sampled_from(["add", "add", "remove", "reduce", "take"]),
    st.booleans(),
    st.integers(1, TICKS_PER_ONE - 1),
    st.integers(1, 50),
)


class SlowBook:
    """Orders in the order of their arrival, sorted for each call."""

    def __init__(self) -> None:
        self.orders: list[NamedOrder] = []

    def side(self, *, is_bid: bool) -> list[NamedOrder]:
        orders = [order for order in self.orders if order.level.side.is_bid == is_bid]
        return sorted(orders, key=lambda order: -order.level.rank)

    def levels(self, *, is_bid: bool) -> list[LevelSize]:
        sizes: dict[int, int] = {}
        for order in self.side(is_bid=is_bid):
            price = order.level.yes_price_ticks
            sizes[price] = sizes.get(price, 0) + order.remaining_units
        return [LevelSize(*level) for level in sizes.items()]

    def crossed(self, order: NamedOrder) -> list[NamedOrder]:
        return [
            other
            for other in self.side(is_bid=not order.level.side.is_bid)
            if other.level.rank + order.level.rank >= TICKS_PER_ONE
        ]


def move(book: NamedBook, slow: SlowBook, number: int, step: tuple[str, bool, int, int]) -> None:
    kind, is_bid, price_ticks, units = step
    size = 10 * units
    order = an_order(book, f"{number}", price_ticks, size, is_bid=is_bid, wallet=f"{number}")
    crossed = slow.crossed(order)
    if kind == "take":
        side = book.side(is_bid=not is_bid)
        match = side.take(TICKS_PER_ONE - order.level.rank, "carol", size)
        assert [each for each, _ in match.fills] == crossed[: len(match.fills)]
        slow.orders = [each for each in slow.orders if each.remaining_units]
    elif kind == "add" or not slow.orders:
        if not crossed:
            slow.orders += rested(order)
    else:
        order = slow.orders[units % len(slow.orders)]
        if kind == "reduce" and order.remaining_units > 10:
            order.level.side.reduce(order, 10 * max(1, order.remaining_units // 20))
        else:
            order.level.side.remove(order)
            slow.orders.remove(order)


@given(st.lists(MOVES, max_size=60))
def test_a_book_equals_its_sorted_orders(
    steps: list[tuple[str, bool, int, int]],
) -> None:
    book, slow = NamedBook(TICKS_PER_ONE), SlowBook()
    for number, step in enumerate(steps):
        move(book, slow, number, step)
        bids, asks = slow.side(is_bid=True), slow.side(is_bid=False)
        assert list(book.orders()) == bids + asks
        assert book.best_bid() == (bids[0].level.yes_price_ticks if bids else None)
        assert book.best_ask() == (asks[0].level.yes_price_ticks if asks else None)
        assert book.levels(is_bid=True) == slow.levels(is_bid=True)
        assert book.levels(is_bid=False) == slow.levels(is_bid=False)

"""Price-time priority in a book for both tokens of a condition."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_live_order

from foretell.domain.exchange.book import Book, LevelSize, LiveOrder, is_bid, price_in_yes
from foretell.domain.exchange.order import Side

TICKS_PER_ONE = 10


def a_bid(name: str, price_ticks: int = 50, size_units: int = 100) -> LiveOrder:
    return a_live_order(name, price_ticks, size_units)


def an_ask(name: str, price_ticks: int = 60, size_units: int = 100) -> LiveOrder:
    return a_live_order(name, price_ticks, size_units, side=Side.SELL)


def a_book(*orders: LiveOrder, ticks_per_one: int = 100) -> Book:
    book = Book(ticks_per_one)
    for order in orders:
        book.add(order)
    return book


def met(book: Book, limit_ticks: int, *, taker_is_bid: bool) -> list[LiveOrder]:
    return list(book.opposite(limit_ticks, taker_is_bid=taker_is_bid))


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
    book = a_book()
    assert (book.best_bid(), book.best_ask()) == (None, None)
    assert list(book.orders()) == []


def test_orders_of_both_tokens_meet_in_one_book() -> None:
    """BUY no at 30 is an ask at 70, SELL no at 40 a bid at 60."""
    buy_no = a_live_order("buy no", 30, side=Side.BUY, is_yes=False)
    sell_no = a_live_order("sell no", 40, side=Side.SELL, is_yes=False)
    book = a_book(buy_no, sell_no)
    assert (book.best_bid(), book.best_ask()) == (60, 70)
    assert met(book, 70, taker_is_bid=True) == [buy_no]
    assert met(book, 60, taker_is_bid=False) == [sell_no]


@pytest.mark.parametrize(("limit", "names"), [(59, []), (60, ["b", "a"]), (61, ["b", "a", "c"])])
def test_a_buyer_meets_the_lowest_ask_then_the_oldest(limit: int, names: list[str]) -> None:
    book = a_book(an_ask("c", 61), an_ask("b", 60), an_ask("a", 60), an_ask("d", 99))
    expected = [a_live_order(name).order_id for name in names]
    assert [order.order_id for order in met(book, limit, taker_is_bid=True)] == expected


@pytest.mark.parametrize(("limit", "names"), [(51, []), (50, ["b", "a"]), (49, ["b", "a", "c"])])
def test_a_seller_meets_the_highest_bid_then_the_oldest(limit: int, names: list[str]) -> None:
    book = a_book(a_bid("c", 49), a_bid("b", 50), a_bid("a", 50), a_bid("d", 1))
    expected = [a_live_order(name).order_id for name in names]
    assert [order.order_id for order in met(book, limit, taker_is_bid=False)] == expected


def test_a_part_filled_order_keeps_its_place() -> None:
    first, second = a_bid("first"), a_bid("second")
    book = a_book(first, second)
    book.reduce(first, 60)
    assert met(book, 1, taker_is_bid=False) == [first, second]
    assert (first.remaining_units, first.size_units) == (40, 100)
    assert book.size_at(50, is_bid=True) == 140


@pytest.mark.parametrize("units", [-1, 0, 100, 101])
def test_a_reduction_is_positive_and_less_than_the_order(units: int) -> None:
    order = a_bid("first")
    book = a_book(order)
    with pytest.raises(AssertionError):
        book.reduce(order, units)


@pytest.mark.parametrize("gone", range(4))
def test_a_removed_order_leaves_the_queue_of_the_others_unchanged(gone: int) -> None:
    orders = [a_bid(f"{number}") for number in range(4)]
    book = a_book(*orders)
    book.remove(orders[gone])
    left = [order for number, order in enumerate(orders) if number != gone]
    assert met(book, 1, taker_is_bid=False) == left
    assert (orders[gone].previous, orders[gone].next) == (None, None)
    assert book.size_at(50, is_bid=True) == 300


def test_an_order_added_again_goes_to_the_end() -> None:
    first, second = an_ask("first"), an_ask("second")
    book = a_book(first, second)
    book.remove(first)
    book.add(first)
    assert met(book, 99, taker_is_bid=True) == [second, first]


def test_the_best_prices_move_as_levels_empty_and_fill() -> None:
    low, high = a_bid("low", 20), a_bid("high", 40)
    cheap, dear = an_ask("cheap", 60), an_ask("dear", 80)
    book = a_book(low, high, cheap, dear)
    assert (book.best_bid(), book.best_ask()) == (40, 60)
    book.remove(high)
    book.remove(cheap)
    assert (book.best_bid(), book.best_ask()) == (20, 80)
    book.add(high)
    book.add(cheap)
    assert (book.best_bid(), book.best_ask()) == (40, 60)
    assert book.levels(is_bid=True) == [LevelSize(40, 100), LevelSize(20, 100)]
    assert book.levels(is_bid=False) == [LevelSize(60, 100), LevelSize(80, 100)]


@pytest.mark.parametrize("price_ticks", [1, 9_999])
def test_the_outermost_prices_have_levels(price_ticks: int) -> None:
    bid = a_live_order("bid", price_ticks, ticks_per_one=10_000)
    book = a_book(bid, ticks_per_one=10_000)
    assert book.best_bid() == price_ticks
    assert met(book, 0, taker_is_bid=False) == [bid]
    book.remove(bid)
    assert book.best_bid() is None


def test_an_unused_level_has_no_size() -> None:
    assert a_book().size_at(50, is_bid=True) == 0
    assert a_book(a_bid("bid")).size_at(50, is_bid=False) == 0


def test_an_order_cannot_be_removed_twice() -> None:
    first, second = a_live_order("first"), a_live_order("second")
    book = a_book(first, second)
    book.remove(first)
    with pytest.raises(AssertionError, match="in the book"):
        book.remove(first)


def test_an_order_of_another_book_cannot_be_removed() -> None:
    with pytest.raises(AssertionError):
        a_book().remove(a_bid("another"))


class WatchedOrder(LiveOrder):
    """An order that counts the reads of its fields."""

    looks: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:  # type: ignore[explicit-override] # 3.11 has none
        WatchedOrder.looks.append(name)
        return super().__getattribute__(name)


def watched(size: int) -> Iterator[WatchedOrder]:
    plain = a_live_order()
    fields = {name: getattr(plain, name) for name in LiveOrder.__struct_fields__}
    for _ in range(size):
        yield WatchedOrder(**fields)


def looks_to_remove_the_middle_of(size: int) -> int:
    orders = list(watched(size))
    book = a_book(*orders)
    WatchedOrder.looks.clear()
    book.remove(orders[size // 2])
    return len(WatchedOrder.looks)


def test_a_cancel_reads_as_many_orders_in_a_long_queue_as_in_a_short_one() -> None:
    assert looks_to_remove_the_middle_of(3_000) == looks_to_remove_the_middle_of(3)


MOVES = st.tuples(
    st.sampled_from(["add", "add", "remove", "reduce"]),
    st.booleans(),
    st.integers(1, TICKS_PER_ONE - 1),
    st.integers(1, 50),
)


class SlowBook:
    """Orders in the order of their arrival, sorted for each call."""

    def __init__(self) -> None:
        self.orders: list[LiveOrder] = []

    def side(self, *, is_bid: bool) -> list[LiveOrder]:
        orders = [order for order in self.orders if order.is_bid == is_bid]
        sign = -1 if is_bid else 1
        return sorted(orders, key=lambda order: sign * order.yes_price_ticks)

    def levels(self, *, is_bid: bool) -> list[LevelSize]:
        sizes: dict[int, int] = {}
        for order in self.side(is_bid=is_bid):
            price = order.yes_price_ticks
            sizes[price] = sizes.get(price, 0) + order.remaining_units
        return [LevelSize(*level) for level in sizes.items()]

    def crosses(self, order: LiveOrder) -> bool:
        sign = 1 if order.is_bid else -1
        return any(
            sign * (order.yes_price_ticks - other.yes_price_ticks) >= 0
            for other in self.side(is_bid=not order.is_bid)
        )


def move(book: Book, slow: SlowBook, number: int, step: tuple[str, bool, int, int]) -> None:
    kind, is_yes, price_ticks, units = step
    if kind == "add" or not slow.orders:
        fields = {"is_yes": is_yes, "side": Side(units % 2), "ticks_per_one": TICKS_PER_ONE}
        order = a_live_order(f"{number}", price_ticks, units, **fields)
        assert book.is_met(order.yes_price_ticks, taker_is_bid=order.is_bid) is slow.crosses(order)
        if not slow.crosses(order):
            book.add(order)
            slow.orders.append(order)
        return
    order = slow.orders[units % len(slow.orders)]
    if kind == "reduce" and order.remaining_units > 1:
        book.reduce(order, max(1, order.remaining_units // 2))
        return
    book.remove(order)
    slow.orders.remove(order)


@given(st.lists(MOVES, max_size=60))
def test_a_book_equals_its_sorted_orders(
    steps: list[tuple[str, bool, int, int]],
) -> None:
    book, slow = Book(TICKS_PER_ONE), SlowBook()
    for number, step in enumerate(steps):
        move(book, slow, number, step)
        bids, asks = slow.side(is_bid=True), slow.side(is_bid=False)
        assert list(book.orders()) == bids + asks
        assert book.best_bid() == (bids[0].yes_price_ticks if bids else None)
        assert book.best_ask() == (asks[0].yes_price_ticks if asks else None)
        assert book.levels(is_bid=True) == slow.levels(is_bid=True)
        assert book.levels(is_bid=False) == slow.levels(is_bid=False)

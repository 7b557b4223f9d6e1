"""Refusals and checks of orders over many resting ones: decided from the sums of the levels."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from tests.domain.exchange.reference.resting import NamedOrder, an_order, rested
from tests.domain.exchange.test_matching import NamedBook, matches, side_of
from tests.rigs.digest import digest
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_state,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import (
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    PostOnlyWouldCross,
)
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.open_orders import CrossesOwnOrders
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.arrivals.order_limits import OrderLimits
from foretell.domain.exchange.arrivals.reach import reach_of
from foretell.domain.exchange.book import BookSide
from foretell.domain.exchange.commands import DelayMarket, PlaceOrder
from foretell.domain.exchange.delays.delayed_orders import due_releases
from foretell.domain.exchange.matching import Taker, plan_match
from foretell.domain.exchange.order import OrderType, SignedOrder
from foretell.domain.exchange.place_order import check_order
from foretell.domain.exchange.state import State

FOK, FAK, GTC = OrderType.FOK, OrderType.FAK, OrderType.GTC
MAKERS = 40
FEW = OrderLimits(of_wallet=100, of_market=50, crossed=2)


@given(matches())
def test_a_taker_reaches_what_a_plan_says(case: tuple[NamedBook, Taker]) -> None:
    book, taker = case
    side = side_of(book)
    own = [order for order in book.orders() if order.wallet is taker.wallet]
    plan, reach = plan_match(side, taker), reach_of(side, taker, own)
    assert reach.is_trading is bool(plan.fills)
    assert reach.is_exhausted is plan.is_exhausted
    assert reach.own_orders >= len(plan.own_orders)
    assert (reach.is_trading or reach.own_orders > 0) is plan.crosses


@pytest.mark.parametrize("own", [500, 501, 10_000])
def test_all_own_orders_at_the_prices_that_a_taker_reaches_are_counted(own: int) -> None:
    book = NamedBook(100)
    rested(an_order(book, "best", 39, 100, is_bid=False))
    for number in range(own):
        rested(an_order(book, str(number), 40, 100, is_bid=False, wallet="carol"))
    rested(an_order(book, "dear", 50, 100, is_bid=False, wallet="carol"))
    taker = Taker("carol", True, 1, 250, None)  # noqa: FBT003 - fields of a row
    mine = [order for order in book.orders() if order.wallet == "carol"]
    assert reach_of(book.asks, taker, mine).own_orders == own + 1
    small = Taker("carol", True, 1, 100, None)  # noqa: FBT003 - fields of a row
    assert reach_of(book.asks, small, mine).own_orders == 0


def a_deep_state() -> State:
    """Return a state in which many small orders of bob and carol rest."""
    orders = [
        a_buy(name, 40 - number % 3, 5 * TOKEN, salt=str(number))
        for number in range(MAKERS)
        for name in ("bob", "carol")
    ]
    return a_state(an_open_market(), some_funds("alice", "bob", "carol"), *map(a_placing, orders))


def too_large(order_type: OrderType = FOK) -> PlaceOrder:
    """Return an order of alice that sells more than all resting orders buy."""
    return a_placing(a_sell("alice", 30, (2 * MAKERS + 1) * 5 * TOKEN), order_type)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets each resting order that is walked."""
    seen: list[object] = []
    walk = BookSide.walk

    def counted(side: BookSide[NamedOrder], limit_rank: int) -> Iterator[NamedOrder]:
        for order in walk(side, limit_rank):
            seen.append(order)
            yield order

    monkeypatch.setattr(BookSide, "walk", counted)
    return seen


def test_attack_h4_an_order_that_is_filled_whole_or_not_at_all_is_refused_without_a_walk(
    walked: list[object],
) -> None:
    state = a_deep_state()
    before = digest(state)
    walked.clear()
    with pytest.raises(FillOrKillUnfilled):
        apply(state, too_large())
    with pytest.raises(FillOrKillUnfilled):
        check_order(state, too_large())
    assert walked == []
    assert digest(state) == before


@pytest.mark.parametrize("order_type", [FOK, FAK, GTC])
def test_attack_h4_a_check_of_an_order_walks_no_resting_orders(
    walked: list[object], order_type: OrderType
) -> None:
    state = a_deep_state()
    before = digest(state)
    walked.clear()
    order = a_sell("alice", 30, 2 * MAKERS * 5 * TOKEN)
    check_order(state, a_placing(order, order_type))
    assert walked == []
    assert digest(state) == before


def test_attack_h4_a_delayed_order_that_cannot_be_filled_is_killed_without_a_walk(
    walked: list[object],
) -> None:
    state = a_deep_state()
    apply(state, DelayMarket(NOW_MS, an_open_market().condition_id, 3_000))
    apply(state, too_large())
    (release,) = due_releases(state, NOW_MS + 3_000)
    assert apply(state, release).is_change
    assert (walked, len(state.live_orders)) == ([], 2 * MAKERS)


@pytest.mark.parametrize("order_type", [FOK, FAK, GTC])
def test_attack_h4_own_orders_in_the_way_are_counted_without_a_walk_over_others(
    walked: list[object], order_type: OrderType
) -> None:
    state = a_deep_state()
    for number in range(3):
        apply(state, a_placing(a_buy("alice", 31, 5 * TOKEN, salt=str(900 + number))))
    with pytest.raises(CrossesOwnOrders, match="more than 2 resting orders of its own wallet"):
        apply(state, too_large(order_type), FEW)
    with pytest.raises(CrossesOwnOrders):
        check_order(state, too_large(order_type), FEW)
    assert walked == []


@pytest.mark.parametrize(
    ("order", "order_type", "is_post_only", "refusal"),
    [
        (a_sell("alice", 45), FOK, False, FillOrKillUnfilled),
        (a_sell("alice", 45), FAK, False, FillAndKillUnmatched),
        (a_sell("alice", 40), GTC, True, PostOnlyWouldCross),
    ],
)
def test_a_check_refuses_what_a_placement_would(
    order: SignedOrder, order_type: OrderType, *, is_post_only: bool, refusal: type[ForetellError]
) -> None:
    state = a_deep_state()
    command = a_placing(order, order_type, is_post_only=is_post_only)
    with pytest.raises(refusal):
        check_order(state, command)
    with pytest.raises(refusal):
        apply(state, command)


def test_an_order_that_its_own_orders_would_fill_is_refused() -> None:
    state = a_deep_state()
    apply(state, a_placing(a_buy("alice", 31, 5 * TOKEN)))
    with pytest.raises(FillOrKillUnfilled):
        apply(state, too_large())


def test_an_order_that_finds_just_enough_is_filled() -> None:
    state = a_deep_state()
    apply(state, a_placing(a_sell("alice", 30, 2 * MAKERS * 5 * TOKEN), FOK))
    assert not state.live_orders

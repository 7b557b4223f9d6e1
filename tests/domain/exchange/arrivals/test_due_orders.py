"""Expired orders in the way of an order: one look walks a limited number of resting orders."""

import pytest
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_state,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.arrivals.due_orders import due_orders_met
from foretell.domain.exchange.commands import PlaceOrder, ResolveMarket
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, OrderType
from foretell.domain.exchange.state import State

LATER_MS = NOW_MS + 10_000
LASTING = 5


@pytest.fixture
def state() -> State:
    """Return a state with five offers that last before two that are due then."""
    offers = [
        a_placing(a_sell("bob", 40, 5 * TOKEN, salt=str(number))) for number in range(LASTING)
    ]
    until_s = NOW_S + 5 + EXPIRATION_MARGIN_S
    due = [a_sell("bob", 41, 5 * TOKEN, salt=str(900 + n), expiration_s=until_s) for n in (1, 2)]
    dated = [a_placing(order, OrderType.GTD) for order in due]
    return a_state(an_open_market(), some_funds("alice", "bob"), *offers, *dated)


def taking(orders: int) -> PlaceOrder:
    """Return an order that meets as many of them."""
    return a_placing(a_buy("alice", 50, orders * 5 * TOKEN), at_ms=LATER_MS)


@pytest.mark.parametrize(
    ("orders", "walked_max", "due", "is_all"),
    [
        (LASTING, 10, 0, True),
        (LASTING + 1, 10, 2, True),
        (LASTING + 1, LASTING + 2, 2, True),
        (LASTING + 1, LASTING + 1, 1, False),
        (LASTING + 1, LASTING, 0, False),
        (LASTING, LASTING, 0, True),
        (LASTING + 1, 1, 0, False),
    ],
)
def test_attack_h4_a_look_for_expired_orders_walks_a_limited_number(
    *, state: State, orders: int, walked_max: int, due: int, is_all: bool
) -> None:
    met = due_orders_met(state, taking(orders), 10, walked_max)
    assert (len(met.due), met.is_all) == (due, is_all)


@pytest.mark.parametrize(("orders_max", "is_all"), [(0, False), (1, False), (2, True)])
def test_no_more_are_named_than_asked_for(*, state: State, orders_max: int, is_all: bool) -> None:
    met = due_orders_met(state, taking(LASTING + 1), orders_max)
    assert (len(met.due), met.is_all) == (orders_max, is_all)


def test_nothing_is_in_the_way_in_a_market_that_is_over(state: State) -> None:
    apply(state, ResolveMarket(NOW_MS, an_open_market().condition_id))
    assert due_orders_met(state, taking(LASTING + 1), 10) == ([], True)

"""Limits of a wallet's open orders, and of its own orders that one order crosses."""

import msgspec
import pytest
from tests.rigs.digest import digest
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_state,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import FillOrKillUnfilled, PostOnlyWouldCross
from foretell.domain.errors.open_orders import CrossesOwnOrders, TooManyOpenOrders
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.arrivals.order_limits import OrderLimits
from foretell.domain.exchange.commands import CancelOrders, DelayMarket, PlaceOrder
from foretell.domain.exchange.ledger import INDEXED_ABOVE, WalletAccounts
from foretell.domain.exchange.order import OrderType, SignedOrder
from foretell.domain.exchange.place_order import check_order
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import ZERO_BYTES32

FEW = OrderLimits(of_wallet=6, of_market=4, crossed=2)
OTHER = an_open_market("other")
TAKING = [OrderType.FOK, OrderType.FAK, OrderType.GTC]


def a_state_with(*placings: PlaceOrder) -> State:
    funds = some_funds("alice", "bob"), some_funds("alice", market="other")
    return a_state(an_open_market(), OTHER, *funds, *placings)


def resting(count: int, first: int = 0, price: int = 40) -> list[PlaceOrder]:
    """Return orders of alice that buy yes."""
    return [
        a_placing(a_buy("alice", price, 5 * TOKEN, salt=str(first + number)))
        for number in range(count)
    ]


def crossing(order_type: OrderType = OrderType.FOK, size: int = 5) -> PlaceOrder:
    """Return an order of alice that sells yes."""
    return a_placing(a_sell("alice", 40, size * TOKEN, salt="900"), order_type)


@pytest.mark.parametrize("order_type", TAKING)
def test_attack_h1_an_order_that_crosses_too_many_own_orders_is_refused(
    order_type: OrderType,
) -> None:
    state = a_state_with(*resting(3))
    before = digest(state)
    with pytest.raises(CrossesOwnOrders):
        apply(state, crossing(order_type), FEW)
    with pytest.raises(CrossesOwnOrders):
        check_order(state, crossing(order_type), FEW)
    assert digest(state) == before


@pytest.mark.parametrize("order_type", TAKING)
def test_an_order_may_cross_as_many_own_orders_as_the_limit(order_type: OrderType) -> None:
    bids = [*resting(2), a_placing(a_buy("bob", 40, 5 * TOKEN))]
    state = a_state_with(*bids)
    outcome = apply(state, crossing(order_type), FEW)
    assert outcome.is_change
    assert not state.live_orders


def test_own_orders_that_an_order_does_not_reach_are_not_counted() -> None:
    state = a_state_with(a_placing(a_buy("bob", 45, 5 * TOKEN)), *resting(4))
    assert apply(state, crossing(), FEW).is_change
    assert len(state.live_orders) == 4


def test_a_post_only_order_that_crosses_is_refused_as_such() -> None:
    state = a_state_with(*resting(3))
    with pytest.raises(PostOnlyWouldCross):
        apply(state, msgspec.structs.replace(crossing(OrderType.GTC), is_post_only=True), FEW)


@pytest.mark.parametrize("order_type", TAKING)
def test_a_command_of_the_journal_has_no_limits(order_type: OrderType) -> None:
    state = a_state_with(*resting(3))
    if order_type is OrderType.FOK:
        with pytest.raises(FillOrKillUnfilled):
            apply(state, crossing(order_type))
    elif order_type is OrderType.GTC:
        assert apply(state, crossing(order_type)).is_change
        assert len(state.live_orders) == 1


def test_attack_h1_a_wallet_has_a_bounded_number_of_orders_in_a_market() -> None:
    state = a_state_with(*resting(4))
    (more,) = resting(1, first=4)
    before = digest(state)
    with pytest.raises(TooManyOpenOrders, match="4 or more open orders in market"):
        apply(state, more, FEW)
    with pytest.raises(TooManyOpenOrders):
        check_order(state, more, FEW)
    assert digest(state) == before
    elsewhere = a_placing(a_buy("alice", market="other"), market=OTHER)
    assert apply(state, elsewhere, FEW).is_change
    apply(state, CancelOrders(0, an_address("alice"), (resting(1)[0].order_id,)))
    assert apply(state, more, FEW).is_change


def test_attack_h1_a_wallet_has_a_bounded_number_of_orders_in_all_markets() -> None:
    others = [
        a_placing(a_buy("alice", market="other", salt=str(salt)), market=OTHER) for salt in range(3)
    ]
    state = a_state_with(*resting(3), *others)
    (more,) = resting(1, first=4)
    with pytest.raises(TooManyOpenOrders, match="6 or more open orders, and may have at most 6"):
        apply(state, more, FEW)
    assert apply(state, a_placing(a_buy("bob", 30)), FEW).is_change
    assert apply(state, resting(3)[0], FEW).result is not None, "a repeated order has its answer"


def test_attack_h1_delayed_orders_count_as_open() -> None:
    state = a_state_with(a_placing(a_sell("bob", 60, 100 * TOKEN)))
    apply(state, DelayMarket(0, an_open_market().condition_id, 3_000))
    takers = [a_placing(order) for order in some_takers(7)]
    for command in takers[:6]:
        apply(state, command, FEW)
    with pytest.raises(TooManyOpenOrders):
        apply(state, takers[6], FEW)


def some_takers(count: int) -> list[SignedOrder]:
    return [a_buy("alice", 60, 5 * TOKEN, salt=str(salt)) for salt in range(count)]


def has_index(wallet: WalletAccounts) -> bool:
    return wallet.order_index is not None


def test_orders_by_key_and_market_are_the_same_with_and_without_an_index() -> None:
    state = a_state_with()
    wallet = state.ledger.accounts_by_wallet[an_address("alice")]
    seen = []
    for number in range(INDEXED_ABOVE + 20):
        market = OTHER if number % 3 else an_open_market()
        name = "other" if number % 3 else "market"
        order = a_buy("alice", 30, 5 * TOKEN, salt=str(number), market=name)
        command = a_placing(order, market=market, owner=f"key {number % 2}")
        apply(state, command)
        seen.append(command)
    assert has_index(wallet)
    for owner in (None, "key 0", "key 1", "key 2"):
        for condition in (None, OTHER.condition_id, an_open_market().condition_id, ZERO_BYTES32):
            wanted = [
                each.order_id
                for each in seen
                if owner in {None, each.owner} and condition in {None, each.condition_id}
            ]
            found = [order.order_id for order in wallet.orders_of(owner, condition)]
            assert sorted(found) == sorted(wanted)
    gone = [each.order_id for each in seen[: INDEXED_ABOVE // 2 + 30]]
    apply(state, CancelOrders(0, an_address("alice"), tuple(gone)))
    assert not has_index(wallet)
    assert wallet.orders_count == len(state.live_orders) == len(seen) - len(gone)
    assert wallet.orders_count_in(OTHER.condition_id) == sum(
        each.condition_id == OTHER.condition_id for each in seen[len(gone) :]
    )

"""The engine's state and the operations of commands."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rigs.digest import digest
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_live_order,
    a_state,
    a_word,
    an_address,
    an_asset,
    an_open_market,
    some_funds,
)

from foretell.domain.exchange.book import LevelSize, LiveOrder
from foretell.domain.exchange.effects import BookChanged, CloseReason, LevelChange, OrderClosed
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import OrderStatus, OrderType, Side
from foretell.domain.exchange.state import Market, State

ALICE = an_address("alice")


def a_resting_state(*orders: LiveOrder) -> State:
    state = a_state(an_open_market(), some_funds("alice"))
    for order in orders:
        state.rest(order)
    state.book_changes(NOW_MS)
    return state


def a_market(state: State) -> Market:
    return state.market_by_id[a_word("market")]


def reserved(state: State, asset: AssetId = COLLATERAL) -> int:
    return state.ledger.look_up(ALICE, asset).reserved_units


@pytest.mark.parametrize("is_yes", [True, False])
def test_a_buyer_gives_collateral_and_a_seller_its_token(*, is_yes: bool) -> None:
    market = Market(an_open_market())
    assert market.token(is_yes=is_yes) == an_asset(is_yes=is_yes)
    assert market.asset_given(Side.BUY, is_yes=is_yes) == COLLATERAL
    assert market.asset_given(Side.SELL, is_yes=is_yes) == an_asset(is_yes=is_yes)


@pytest.mark.parametrize("is_yes", [True, False])
def test_a_resting_buy_reserves_its_cost(*, is_yes: bool) -> None:
    order = a_live_order(price_ticks=30, size_units=10 * TOKEN, is_yes=is_yes)
    state = a_resting_state(order)
    assert reserved(state) == 3 * TOKEN
    assert state.live_orders == {order.order_id: order}
    assert list(a_market(state).book.orders()) == [order]


@pytest.mark.parametrize("is_yes", [True, False])
def test_a_resting_sell_reserves_its_tokens(*, is_yes: bool) -> None:
    state = a_resting_state(a_live_order(size_units=10 * TOKEN, side=Side.SELL, is_yes=is_yes))
    assert reserved(state, an_asset(is_yes=is_yes)) == 10 * TOKEN


@pytest.mark.parametrize("side", Side)
def test_an_order_that_crosses_another_cannot_rest(side: Side) -> None:
    state = a_resting_state(a_live_order("first", side=side))
    with pytest.raises(AssertionError, match=r"no (ask|bid) is at"):
        state.rest(a_live_order("second", side=Side(1 - side)))


def test_an_order_cannot_be_filled_beyond_its_size() -> None:
    order = a_live_order(price_ticks=33, size_units=100)
    state = a_resting_state(order)
    with pytest.raises(AssertionError, match="filled <= size"):
        state.fill(order, 200)


def test_a_fractional_cost_is_reserved_rounded_up() -> None:
    state = a_resting_state(a_live_order(price_ticks=33, size_units=101))
    assert reserved(state) == 34


def test_a_partial_fill_releases_its_part_and_leaves_the_order_live() -> None:
    order = a_live_order(price_ticks=33, size_units=301)
    state = a_resting_state(order)
    assert state.fill(order, 100) is OrderStatus.LIVE
    assert (reserved(state), order.remaining_units) == (67, 201)
    assert order.order_id in state.live_orders


def test_a_whole_fill_closes_the_order() -> None:
    order = a_live_order(price_ticks=33, size_units=100)
    state = a_resting_state(order)
    assert state.fill(order, 100) is OrderStatus.MATCHED
    assert (reserved(state), order.remaining_units) == (0, 0)
    assert state.live_orders == {}
    assert list(a_market(state).book.orders()) == []
    assert state.ledger.look_up(ALICE, COLLATERAL).orders == {}


@pytest.mark.parametrize("reason", [reason for reason in CloseReason if reason != CloseReason.DUST])
def test_a_closed_order_counts_as_canceled(reason: CloseReason) -> None:
    order = a_live_order(price_ticks=33, size_units=300)
    state = a_resting_state(order)
    state.fill(order, 100)
    assert state.close(order, reason, NOW_MS + 1) == OrderClosed(
        order_id=order.order_id,
        condition_id=order.condition_id,
        owner=order.owner,
        maker=ALICE,
        size_units=300,
        remaining_units=200,
        status=OrderStatus.CANCELED,
        reason=reason,
        at_ms=NOW_MS + 1,
    )
    assert (reserved(state), state.live_orders) == (0, {})
    assert list(a_market(state).book.orders()) == []


def test_an_order_closed_as_dust_counts_as_matched() -> None:
    order = a_live_order(price_ticks=33, size_units=100)
    closed = a_resting_state(order).close(order, CloseReason.DUST, NOW_MS)
    assert closed.status is OrderStatus.MATCHED


def test_an_order_is_not_closed_twice() -> None:
    order = a_live_order()
    state = a_resting_state(order)
    state.close(order, CloseReason.CANCELED, NOW_MS)
    with pytest.raises(AssertionError, match="in the book"):
        state.close(order, CloseReason.CANCELED, NOW_MS)


def gtd(name: str, leaves_at_s: int, **fields: Any) -> LiveOrder:
    return a_live_order(name, order_type=OrderType.GTD, leaves_at_s=leaves_at_s, **fields)


def test_an_order_without_expiration_is_never_due() -> None:
    state = a_resting_state(a_live_order())
    assert state.next_expiry_s() is None
    assert state.due_orders(NOW_S + 10**9) == []


def test_orders_are_due_in_their_second_the_earliest_first() -> None:
    late, soon, later = gtd("late", NOW_S + 2), gtd("soon", NOW_S + 1), gtd("later", NOW_S + 3)
    state = a_resting_state(late, soon, later)
    assert state.next_expiry_s() == NOW_S + 1
    assert state.due_orders(NOW_S) == []
    assert state.due_orders(NOW_S + 2) == [soon, late]
    assert state.next_expiry_s() == NOW_S + 3


def cancel(state: State, order: LiveOrder) -> None:
    state.close(order, CloseReason.CANCELED, NOW_MS)


def fill_whole(state: State, order: LiveOrder) -> None:
    state.fill(order, order.remaining_units)


@pytest.mark.parametrize("leave", [cancel, fill_whole])
def test_an_order_closed_before_its_expiration_is_never_due(
    leave: Callable[[State, LiveOrder], None],
) -> None:
    gone, waiting = gtd("gone", NOW_S + 1), gtd("waiting", NOW_S + 2)
    state = a_resting_state(gone, waiting)
    leave(state, gone)
    assert state.next_expiry_s() == NOW_S + 2
    assert state.due_orders(NOW_S + 2) == [waiting]


def test_a_changed_level_is_published_once() -> None:
    bid, ask = a_live_order("bid", 40), a_live_order("ask", 60, side=Side.SELL)
    state = a_resting_state()
    state.rest(bid)
    state.rest(ask)
    state.fill(ask, TOKEN)
    assert state.book_changes(NOW_MS) == [
        BookChanged(
            condition_id=a_word("market"),
            changes=(
                LevelChange(is_bid=True, level=LevelSize(40, 10 * TOKEN)),
                LevelChange(is_bid=False, level=LevelSize(60, 9 * TOKEN)),
            ),
            best_bid_ticks=40,
            best_ask_ticks=60,
            ticks_per_one=100,
            at_ms=NOW_MS,
        )
    ]
    assert state.book_changes(NOW_MS) == []


def test_an_emptied_level_is_published_with_size_zero() -> None:
    order = a_live_order("bid", 40)
    state = a_resting_state(order)
    state.close(order, CloseReason.CANCELED, NOW_MS)
    [change] = state.book_changes(NOW_MS)
    assert change.changes == (LevelChange(is_bid=True, level=LevelSize(40, 0)),)
    assert (change.best_bid_ticks, change.best_ask_ticks) == (None, None)


def test_only_changed_markets_are_published() -> None:
    markets = [an_open_market(name) for name in ("quiet", "busy", "also busy")]
    state = a_state(*markets, some_funds("alice"))
    state.rest(a_live_order("a", condition_id=a_word("also busy")))
    state.rest(a_live_order("b", condition_id=a_word("busy")))
    changed = [change.condition_id for change in state.book_changes(NOW_MS)]
    assert changed == [a_word("also busy"), a_word("busy")]


class MarketsByName(dict[Any, Market]):
    """Markets that may be looked up but not iterated."""

    def values(self) -> Any:  # type: ignore[explicit-override] # 3.11 has none
        raise AssertionError("a command iterates all markets")


def test_no_command_iterates_all_markets() -> None:
    state = a_resting_state()
    state.market_by_id = MarketsByName(state.market_by_id)
    state.rest(a_live_order())
    assert len(state.book_changes(NOW_MS)) == 1


def test_an_untracked_state_publishes_no_changes_and_differs_in_nothing_else() -> None:
    tracked, untracked = a_resting_state(), a_resting_state()
    untracked.tracks_book_changes = False
    for state in (tracked, untracked):
        state.rest(a_live_order())
    assert len(tracked.book_changes(NOW_MS + 1)) == 1
    assert untracked.book_changes(NOW_MS + 1) == []
    assert digest(untracked) == digest(tracked)
    untracked.tracks_book_changes = True
    untracked.rest(a_live_order("another", price_ticks=30))
    (changed,) = untracked.book_changes(NOW_MS + 2)
    assert [change.level.price_ticks for change in changed.changes] == [30]

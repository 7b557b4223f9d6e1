"""The engine's state and the operations of commands."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rigs.digest import digest
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_state,
    a_trading_state,
    a_word,
    an_address,
    an_asset,
    an_open_market,
    an_owner,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.effects import BookChanged, CloseReason, LevelChange, OrderClosed
from foretell.domain.exchange.ledger import COLLATERAL, AssetId, LiveOrder
from foretell.domain.exchange.order import OrderStatus, OrderType, Side, SignedOrder
from foretell.domain.exchange.state import Market, State

ALICE = an_address("alice")


def placed(state: State, order: SignedOrder, **fields: Any) -> LiveOrder:
    """Place an order that comes to rest, and return it."""
    placing = a_placing(order, **fields)
    apply(state, placing)
    return state.live_orders[placing.order_id]


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
    state = a_trading_state()
    order = placed(state, a_buy(price_ticks=30, size_units=10 * TOKEN, is_yes=is_yes))
    assert reserved(state) == order.reserved_units() == 3 * TOKEN
    assert state.live_orders == {order.order_id: order}
    assert list(a_market(state).book.orders()) == [order]


@pytest.mark.parametrize("is_yes", [True, False])
def test_a_resting_sell_reserves_its_tokens(*, is_yes: bool) -> None:
    state = a_trading_state()
    order = placed(state, a_sell("alice", size_units=10 * TOKEN, is_yes=is_yes))
    assert reserved(state, an_asset(is_yes=is_yes)) == order.reserved_units() == 10 * TOKEN


@pytest.mark.parametrize("order", [a_buy(), a_sell(), a_buy(is_yes=False), a_sell(is_yes=False)])
def test_a_resting_order_has_both_its_prices(order: SignedOrder) -> None:
    state = a_trading_state()
    resting = placed(state, order)
    is_yes = order.token_id == an_asset(is_yes=True)
    assert (resting.side, resting.is_yes, resting.maker) == (order.side, is_yes, order.maker)
    assert resting.is_bid is (is_yes is (order.side is Side.BUY))
    assert resting.price_ticks + (0 if is_yes else resting.yes_price_ticks) == (
        50 if is_yes else 100
    )


def test_equal_strings_of_a_wallets_orders_are_stored_once() -> None:
    state = a_trading_state()
    orders = [
        placed(state, a_buy(salt=f"{salt}"), owner=f"a key of {ALICE}", at_ms=NOW_MS)
        for salt in range(3)
    ]
    assert len({id(order.owner) for order in orders}) == 1
    assert len({id(order.signer) for order in orders}) == 1
    other = placed(state, a_buy("bob", maker=ALICE, salt="4"))
    assert (other.owner, other.signer) == (an_owner("bob"), an_address("bob"))


def test_a_fractional_cost_is_reserved_rounded_up() -> None:
    """The seller's odd size leaves an odd remainder of the buyer's."""
    state = a_trading_state()
    placed(state, a_buy(price_ticks=33, size_units=10 * TOKEN))
    apply(state, a_placing(a_sell("bob", 25, 5 * TOKEN + 4), is_post_only=False))
    assert reserved(state) == 1_650_000


def filled(state: State, order: LiveOrder, units: int) -> None:
    """Fill a bid for yes by some units."""
    apply(state, a_placing(a_sell("bob", order.price_ticks, units)))


def test_a_partial_fill_releases_its_part_and_leaves_the_order_live() -> None:
    state = a_trading_state()
    order = placed(state, a_buy(price_ticks=33))
    filled(state, order, 5 * TOKEN)
    assert (reserved(state), order.remaining_units) == (1_650_000, 5 * TOKEN)
    assert order.order_id in state.live_orders


def test_a_whole_fill_closes_the_order() -> None:
    state = a_trading_state()
    order = placed(state, a_buy(price_ticks=33))
    filled(state, order, 10 * TOKEN)
    assert (reserved(state), order.remaining_units) == (0, 0)
    assert state.live_orders == {}
    assert list(a_market(state).book.orders()) == []
    assert state.ledger.look_up(ALICE, COLLATERAL).orders() == []


@pytest.mark.parametrize("reason", [reason for reason in CloseReason if reason != CloseReason.DUST])
def test_a_closed_order_counts_as_canceled(reason: CloseReason) -> None:
    state = a_trading_state()
    order = placed(state, a_buy(price_ticks=33))
    filled(state, order, 5 * TOKEN)
    assert state.close(order, reason, NOW_MS + 1) == OrderClosed(
        order_id=order.order_id,
        condition_id=order.condition_id,
        owner=order.owner,
        maker=ALICE,
        size_units=10 * TOKEN,
        remaining_units=5 * TOKEN,
        status=OrderStatus.CANCELED,
        reason=reason,
        at_ms=NOW_MS + 1,
    )
    assert (reserved(state), state.live_orders) == (0, {})
    assert list(a_market(state).book.orders()) == []


def test_an_order_closed_as_dust_counts_as_matched() -> None:
    state = a_trading_state()
    closed = state.close(placed(state, a_buy()), CloseReason.DUST, NOW_MS)
    assert closed.status is OrderStatus.MATCHED


def test_an_order_is_not_closed_twice() -> None:
    state = a_trading_state()
    order = placed(state, a_buy())
    state.close(order, CloseReason.CANCELED, NOW_MS)
    with pytest.raises(AssertionError, match="in the book"):
        state.close(order, CloseReason.CANCELED, NOW_MS)


def gtd(state: State, leaves_at_s: int) -> LiveOrder:
    return placed(state, a_buy(expiration_s=leaves_at_s + 60), order_type=OrderType.GTD)


def test_an_order_without_expiration_is_never_due() -> None:
    state = a_trading_state()
    placed(state, a_buy())
    assert state.next_expiry_s() is None
    assert state.due_orders(NOW_S + 10**9) == []


def test_orders_are_due_in_their_second_the_earliest_first() -> None:
    state = a_trading_state()
    late, soon, _ = gtd(state, NOW_S + 2), gtd(state, NOW_S + 1), gtd(state, NOW_S + 3)
    assert state.next_expiry_s() == NOW_S + 1
    assert state.due_orders(NOW_S) == []
    assert state.due_orders(NOW_S + 2) == [soon, late]
    assert state.next_expiry_s() == NOW_S + 3


def cancel(state: State, order: LiveOrder) -> None:
    state.close(order, CloseReason.CANCELED, NOW_MS)


def fill_whole(state: State, order: LiveOrder) -> None:
    filled(state, order, order.remaining_units)


@pytest.mark.parametrize("leave", [cancel, fill_whole])
def test_an_order_closed_before_its_expiration_is_never_due(
    leave: Callable[[State, LiveOrder], None],
) -> None:
    state = a_trading_state()
    gone, waiting = gtd(state, NOW_S + 1), gtd(state, NOW_S + 2)
    leave(state, gone)
    assert state.next_expiry_s() == NOW_S + 2
    assert state.due_orders(NOW_S + 2) == [waiting]


def test_a_changed_level_is_published_once() -> None:
    state = a_trading_state()
    bids = [placed(state, a_buy(salt=f"{salt}", price_ticks=40)) for salt in range(3)]
    ask = placed(state, a_sell("bob", 60))
    for order in (bids[0], ask, bids[1]):
        cancel(state, order)
    assert state.book_changes(NOW_MS) == [
        BookChanged(
            condition_id=a_word("market"),
            changes=(
                LevelChange(is_bid=True, level=LevelSize(40, 10 * TOKEN)),
                LevelChange(is_bid=False, level=LevelSize(60, 0)),
            ),
            best_bid_ticks=40,
            best_ask_ticks=None,
            ticks_per_one=100,
            at_ms=NOW_MS,
        )
    ]
    assert state.book_changes(NOW_MS) == []


def test_only_changed_markets_are_published() -> None:
    markets = [an_open_market(name) for name in ("quiet", "busy", "also busy")]
    state = a_state(*markets, some_funds("alice"))
    for market in markets:
        placed(state, a_buy(market=market.condition_id), market=market)
    for name in ("also busy", "busy"):
        cancel(state, next(orders_in(state, name)))
    changed = [change.condition_id for change in state.book_changes(NOW_MS)]
    assert changed == [a_word("also busy"), a_word("busy")]


def orders_in(state: State, name: str) -> Any:
    return state.market_by_id[a_word(name)].book.orders()


class MarketsByName(dict[Any, Market]):
    """Markets that may be looked up but not iterated."""

    def values(self) -> Any:  # type: ignore[explicit-override] # 3.11 has none
        raise AssertionError("a command iterates all markets")


def test_no_command_iterates_all_markets() -> None:
    state = a_trading_state()
    state.market_by_id = MarketsByName(state.market_by_id)
    cancel(state, placed(state, a_buy()))
    assert len(state.book_changes(NOW_MS)) == 1


def some_placings() -> list[PlaceOrder]:
    return [
        a_placing(a_buy(price_ticks=40)),
        a_placing(a_buy(price_ticks=41)),
        a_placing(a_sell("bob", 40, 15 * TOKEN)),
        a_placing(a_sell("bob", 40, 15 * TOKEN, salt="2")),
    ]


def test_an_untracked_state_publishes_no_changes_and_differs_in_nothing_else() -> None:
    tracked, untracked = a_trading_state(), a_trading_state()
    untracked.tracks_book_changes = False
    for placing in some_placings():
        seen, unseen = apply(tracked, placing), apply(untracked, placing)
        assert isinstance(seen.effects[-1], BookChanged)
        assert unseen.effects == seen.effects[:-1]
        assert unseen.result == seen.result
    for state in (tracked, untracked):
        cancel(state, next(orders_in(state, "market")))
    assert len(tracked.book_changes(NOW_MS + 1)) == 1
    assert untracked.book_changes(NOW_MS + 1) == []
    assert digest(untracked) == digest(tracked)

"""Resolution of a market whose orders are closed in parts."""

import pytest
from tests.rigs.digest import digest
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_state,
    a_word,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import MarketClosed
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import (
    CancelOrders,
    DelayMarket,
    PlaceOrder,
    ResolveMarket,
    decode_command,
)
from foretell.domain.exchange.delays.delayed_orders import due_releases
from foretell.domain.exchange.effects import (
    BookChanged,
    CloseReason,
    MarketResolved,
    OrderClosed,
    OrderPlaced,
)
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import State

MARKET = a_word("market")
OTHER = an_open_market("other")
ORDERS = 9
AT_MS = NOW_MS + 1


@pytest.fixture
def state() -> State:
    """Return a state in which four bids, two asks and three delayed orders are of one market."""
    bids = [a_buy("alice", 38 + price, 5 * TOKEN) for price in range(4)]
    asks = [a_sell("bob", 60 + price, 5 * TOKEN) for price in range(2)]
    crossing = [a_buy("bob", 70, 5 * TOKEN, salt=str(salt)) for salt in range(3)]
    state = a_state(
        an_open_market(),
        OTHER,
        some_funds("alice", "bob", "carol"),
        some_funds("alice", market="other"),
        *map(a_placing, [*bids, *asks]),
        DelayMarket(NOW_MS, MARKET, 3_000),
    )
    for command in [*map(a_placing, crossing), elsewhere()]:
        apply(state, command)
    assert len(state.delays.orders) == 3
    return state


def elsewhere() -> PlaceOrder:
    return a_placing(a_buy("alice", market="other"), market=OTHER)


def closed(outcome: Outcome) -> list[str]:
    effects = [each for each in outcome.effects if isinstance(each, OrderClosed)]
    assert {each.reason for each in effects} <= {CloseReason.MARKET_RESOLVED}
    return [each.order_id for each in effects]


def a_part(orders_max: int) -> ResolveMarket:
    return ResolveMarket(AT_MS, MARKET, orders_max)


@pytest.mark.parametrize("orders_max", range(1, ORDERS + 2))
def test_parts_close_what_one_command_closes_in_its_order(state: State, orders_max: int) -> None:
    whole = decode_state(encode_state(state))
    wanted = closed(apply(whole, ResolveMarket(AT_MS, MARKET)))
    gone: list[str] = []
    while state.has_orders(state.market_by_id[MARKET]):
        part = closed(apply(state, a_part(orders_max)))
        assert len(part) == min(orders_max, ORDERS - len(gone))
        gone += part
        state = decode_state(encode_state(state))
    assert gone == wanted
    assert len(gone) == ORDERS
    assert list(state.live_orders) == [elsewhere().order_id]
    assert digest(state) == digest(whole)


def test_a_market_is_resolved_by_the_first_part_alone(state: State) -> None:
    effects = [each for _ in range(3) for each in apply(state, a_part(4)).effects]
    resolved = MarketResolved(MARKET, AT_MS)
    assert [each for each in effects if isinstance(each, MarketResolved)] == [resolved]
    assert apply(state, a_part(4)) == Outcome(None, [], is_change=False)


def test_no_order_is_taken_from_the_first_part_on(state: State) -> None:
    apply(state, a_part(1))
    with pytest.raises(MarketClosed):
        apply(state, a_placing(a_sell("carol", 39, 5 * TOKEN)))
    assert state.unsettled_trades == {}


def test_orders_can_be_canceled_between_two_parts(state: State) -> None:
    apply(state, a_part(5))
    left = [order.order_id for order in state.market_by_id[MARKET].book.orders()]
    apply(state, CancelOrders(AT_MS, an_address("bob"), tuple(left)))
    assert len(closed(apply(state, a_part(10)))) == 3
    assert not state.has_orders(state.market_by_id[MARKET])


@pytest.mark.parametrize("count", [1, 2])
def test_a_cancel_between_two_parts_shows_no_level_again(state: State, count: int) -> None:
    """The levels of the orders that are still to be closed stayed in the public book."""
    apply(state, a_part(1))
    left = [
        order.order_id
        for order in state.market_by_id[MARKET].book.orders()
        if order.signer == an_address("alice")
    ]
    effects = apply(state, CancelOrders(AT_MS, an_address("alice"), tuple(left[:count]))).effects
    assert sum(isinstance(each, OrderClosed) for each in effects) == count
    assert not [each for each in effects if isinstance(each, BookChanged)]


def test_a_release_between_two_parts_closes_its_order_for_the_resolution(state: State) -> None:
    apply(state, a_part(1))
    for release in due_releases(state, NOW_MS + 3_000):
        (effect,) = apply(state, release).effects
        assert isinstance(effect, OrderPlaced)
        assert effect.close_reason is CloseReason.MARKET_RESOLVED
    assert state.unsettled_trades == {}


def test_a_command_of_an_older_journal_closes_all_orders(state: State) -> None:
    older = decode_command(
        b"\x93\xa7resolve\xcf" + AT_MS.to_bytes(8, "big") + b"\xd9\x42" + MARKET.encode()
    )
    assert older == ResolveMarket(AT_MS, MARKET)
    assert len(closed(apply(state, older))) == ORDERS


@pytest.mark.parametrize("orders_max", [None, 4, 1])
def test_the_whole_book_leaves_with_the_first_part_and_nothing_of_it_changes_later(
    state: State, orders_max: int | None
) -> None:
    """Nobody sees a best price of a resolved market again."""
    outcomes = [apply(state, ResolveMarket(AT_MS, MARKET, orders_max)) for _ in range(ORDERS)]
    first, *later = [
        [each for each in outcome.effects if isinstance(each, BookChanged)] for outcome in outcomes
    ]
    (changed,) = first
    assert (changed.best_bid_ticks, changed.best_ask_ticks) == (None, None)
    prices = [(is_bid, ticks, size) for is_bid, ticks, size in changed.level_changes]
    assert prices == [*[(True, 41 - n, 0) for n in range(4)], (False, 60, 0), (False, 61, 0)]
    assert later == [[]] * (ORDERS - 1)
    assert isinstance(outcomes[0].effects[-1], MarketResolved)

"""Orders that are not to blame for a failed trade go back to their book (D-15)."""

from typing import Any

import msgspec
import pytest
from tests.rigs.orders.version_2 import a_v2_sell
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_trading_state,
    a_word,
    an_address,
    an_observation,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    BarWallet,
    CancelOrders,
    NonceSeen,
    ObserveChain,
    PlaceOrder,
    ResolveMarket,
    ReturnedOrder,
    StopSeen,
)
from foretell.domain.exchange.effects import BookChanged, OrderReturned
from foretell.domain.exchange.order import OrderType, leaves_book_at_s
from foretell.domain.exchange.signing.stops import StopKind, standing_of
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.trade import TradeStatus

ALICE = an_address("alice")
SIZE = 10 * TOKEN


def returned(placing: PlaceOrder, **fields: Any) -> ReturnedOrder:
    """Return an order that was filled, as the tables have it."""
    size_units = placing.terms.size_units
    assert size_units is not None
    order = ReturnedOrder(
        order_id=placing.order_id,
        signer=placing.order.signer,
        owner=placing.owner,
        order_type=placing.order_type,
        price_ticks=placing.terms.price_ticks,
        ticks_per_one=placing.terms.ticks_per_one,
        size_units=size_units,
        leaves_at_s=leaves_book_at_s(placing.order),
        placed_at_ms=placing.at_ms,
        nonce=placing.order.nonce,
        trade_ids=(),
        is_filled=True,
    )
    return msgspec.structs.replace(order, **fields)


def failed(trade_id: str, *orders: ReturnedOrder) -> ObserveChain:
    command = a_settlement(trade_id, TradeStatus.FAILED, "")
    (seen,) = command.trades
    trades = (msgspec.structs.replace(seen, returned=orders),)
    return msgspec.structs.replace(command, trades=trades)


def matched(maker: PlaceOrder, taker: PlaceOrder) -> tuple[State, str]:
    """Return a state in which one order met another, and their trade."""
    state = a_trading_state("alice", "bob", "carol")
    apply(state, maker)
    result = apply(state, taker).result
    assert isinstance(result, Placement)
    (trade_id,) = result.trade_ids
    return state, trade_id


def filled_maker() -> tuple[State, str, PlaceOrder]:
    maker = a_placing(a_sell("alice", 40, SIZE))
    state, trade_id = matched(maker, a_placing(a_buy("bob", 40, SIZE)))
    return state, trade_id, maker


def resting(state: State) -> list[tuple[str, int]]:
    (market,) = state.market_by_id.values()
    return [(order.order_id, order.remaining_units) for order in market.book.orders()]


def later(placing: PlaceOrder, ms: int = 1_000) -> PlaceOrder:
    return msgspec.structs.replace(placing, at_ms=NOW_MS + ms)


def test_a_filled_order_rests_again_before_all_that_came_later_at_its_price() -> None:
    state, trade_id, maker = filled_maker()
    after = later(a_placing(a_sell("carol", 40, SIZE)))
    apply(state, after)
    outcome = apply(state, failed(trade_id, returned(maker)))
    assert resting(state) == [(maker.order_id, SIZE), (after.order_id, SIZE)]
    (effect,) = [each for each in outcome.effects if isinstance(each, OrderReturned)]
    assert (effect.order.order_id, effect.order.matched_units) == (maker.order_id, 0)
    assert effect.trade_id == trade_id
    assert isinstance(outcome.effects[-1], BookChanged)
    restored = decode_state(encode_state(state))
    assert resting(restored) == resting(state)


def test_an_order_that_still_rests_becomes_larger_where_it_stands() -> None:
    maker = a_placing(a_sell("alice", 40, 3 * SIZE))
    state, trade_id = matched(maker, a_placing(a_buy("bob", 40, SIZE)))
    after = later(a_placing(a_sell("carol", 40, SIZE)))
    apply(state, after)
    apply(state, failed(trade_id, returned(maker, is_filled=False)))
    assert resting(state) == [(maker.order_id, 3 * SIZE), (after.order_id, SIZE)]
    assert state.live_orders[maker.order_id].account.reserved_units == 3 * SIZE


def test_a_taker_rests_at_its_own_limit() -> None:
    taker = a_placing(a_buy("bob", 45, SIZE))
    state, trade_id = matched(a_placing(a_sell("alice", 40, SIZE)), taker)
    apply(state, failed(trade_id, returned(taker)))
    assert resting(state) == [(taker.order_id, SIZE)]
    assert state.live_orders[taker.order_id].price_ticks == 45


def test_two_orders_come_back_in_the_order_of_their_placement() -> None:
    state = a_trading_state("alice", "bob", "carol")
    first, second = (
        a_placing(a_sell("alice", 40, SIZE)),
        later(a_placing(a_sell("carol", 40, SIZE)), 5),
    )
    ids: list[str] = []
    for placing in (first, second):
        apply(state, placing)
        result = apply(
            state, later(a_placing(a_buy("bob", 40, SIZE, salt=f"9{len(ids)}")), 10)
        ).result
        assert isinstance(result, Placement)
        ids += result.trade_ids
    apply(state, failed(ids[1], returned(second)))
    apply(state, failed(ids[0], returned(first)))
    assert [order_id for order_id, _ in resting(state)] == [first.order_id, second.order_id]


@pytest.mark.parametrize(
    "event",
    [
        ResolveMarket(NOW_MS, a_word("market")),
        BarWallet(NOW_MS, ALICE, is_barred=True, cause="x"),
        later(a_placing(a_buy("carol", 40, SIZE))),
        some_funds("alice", units=0),
        msgspec.structs.replace(
            an_observation(), nonces=(NonceSeen(an_address("exchange"), ALICE, 1),)
        ),
    ],
    ids=["resolved", "barred", "crossed", "uncovered", "nonce"],
)
def test_an_order_that_could_not_rest_now_stays_away(event: Any) -> None:
    state, trade_id, maker = filled_maker()
    if isinstance(event, ObserveChain) and event.nonces:
        (market,) = state.market_by_id.values()
        seen = NonceSeen(market.opened.exchange, ALICE, 1)
        event = msgspec.structs.replace(event, nonces=(seen,))
    apply(state, event)
    outcome = apply(state, failed(trade_id, returned(maker)))
    assert not [each for each in outcome.effects if isinstance(each, OrderReturned)]
    assert maker.order_id not in state.live_orders


@pytest.mark.parametrize(
    "fields",
    [
        {"is_filled": False},
        {"order_type": OrderType.FAK},
        {"leaves_at_s": NOW_S},
        {"size_units": SIZE - 1},
        {"order_id": a_word("another order")},
    ],
)
def test_an_order_that_left_for_another_reason_stays_away(fields: dict[str, Any]) -> None:
    state, trade_id, maker = filled_maker()
    apply(state, failed(trade_id, returned(maker, **fields)))
    assert resting(state) == []


def test_an_order_canceled_at_its_exchange_before_it_was_known_stays_away() -> None:
    state, trade_id, maker = filled_maker()
    (market,) = state.market_by_id.values()
    state.canceled_orders.add((market.opened.exchange, maker.order_id))
    apply(state, failed(trade_id, returned(maker)))
    assert resting(state) == []


def test_an_order_that_its_maker_ended_by_a_timestamp_stays_away() -> None:
    maker = a_placing(a_v2_sell("alice"))
    state, trade_id = matched(maker, a_placing(a_buy("bob")))
    back = returned(maker, nonce=standing_of(maker.order))
    exchange = next(iter(state.exchanges))
    apply(state, an_observation(nonces=(NonceSeen(exchange, ALICE, 1),)))
    restored = decode_state(encode_state(state))
    apply(restored, failed(trade_id, back))
    assert resting(restored) == [(maker.order_id, SIZE)]
    stop = StopSeen(exchange, ALICE, StopKind.TIMESTAMP, NOW_MS + 1)
    apply(state, an_observation(stops=(stop,)))
    apply(state, failed(trade_id, back))
    assert resting(state) == []


def test_a_canceled_remainder_takes_nothing_back() -> None:
    maker = a_placing(a_sell("alice", 40, 3 * SIZE))
    state, trade_id = matched(maker, a_placing(a_buy("bob", 40, SIZE)))
    apply(state, CancelOrders(NOW_MS, ALICE, (maker.order_id,)))
    apply(state, failed(trade_id, returned(maker, is_filled=False)))
    assert resting(state) == []


def test_a_resting_order_whose_wallet_covers_no_more_stays_as_it_is() -> None:
    maker = a_placing(a_sell("alice", 40, 3 * SIZE))
    state, trade_id = matched(maker, a_placing(a_buy("bob", 40, SIZE)))
    funds = some_funds("alice", units=3 * SIZE - 1).balances
    command = failed(trade_id, returned(maker, is_filled=False))
    apply(state, msgspec.structs.replace(command, balances=funds))
    assert resting(state) == [(maker.order_id, 2 * SIZE)]

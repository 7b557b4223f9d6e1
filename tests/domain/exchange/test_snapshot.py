"""Encoding of the engine's state; `engine_machine` restarts from a snapshot at any moment."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.digest import digest
from tests.rigs.values import (
    EXCHANGE,
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
    an_observation,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import InvalidExpiration, MarketClosed, OrderPlacedBefore
from foretell.domain.errors.storage import SnapshotUnknown
from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    CancelOrders,
    CancelSeen,
    Command,
    ExpireOrders,
    JoinTreasury,
    NonceSeen,
    PlaceOrder,
    ResolveMarket,
    ReturnAllocation,
    TakeAllocations,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.order import OrderType
from foretell.domain.exchange.snapshot import VERSION, decode_state, encode_state, state_digest
from foretell.domain.exchange.state import Placement, State

KEPT = 5
BYTES_PER_ORDER_MAX = 600


def some_buys(count: int, **fields: Any) -> list[PlaceOrder]:
    order_type = OrderType.GTD if fields else OrderType.GTC
    return [
        a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt), **fields), order_type)
        for salt in range(count)
    ]


def a_forgetful_state(*placings: PlaceOrder) -> State:
    """Return a state with many placed orders that keeps few placements whole."""
    state = State(KEPT)
    commands: list[Command] = [an_open_market(), some_funds("alice", "bob"), *placings]
    for command in commands:
        apply(state, command)
    return state


def test_an_empty_state_is_restored() -> None:
    assert digest(decode_state(encode_state(State()))) == digest(State())


def test_a_state_with_entries_of_every_kind_is_restored() -> None:
    state = a_trading_state("alice", "bob")
    for command in (
        an_open_market("rain"),
        a_placing(a_sell("bob", price_ticks=40, size_units=6 * TOKEN)),
        a_placing(a_buy("alice", price_ticks=41)),
        a_placing(a_buy("bob", price_ticks=9, expiration_s=NOW_S + 100), OrderType.GTD),
        an_observation(part=1, parts=2),
        ResolveMarket(NOW_MS + 5, a_word("rain")),
    ):
        apply(state, command)
    restored = decode_state(encode_state(state))
    assert digest(restored) == digest(state)
    assert restored.next_expiry_s() == state.next_expiry_s() == NOW_S + 40
    assert restored.latest_ms == NOW_MS + 5
    assert not restored.book_changes(NOW_MS)


def test_allocations_of_any_width_and_cancels_on_the_chain_are_restored() -> None:
    state, alice = a_trading_state("alice"), an_address("alice")
    given = AllocationTotal(alice, total_of(2**70))
    seen = an_observation(
        cancels=(CancelSeen(EXCHANGE, a_word("gone")),), nonces=(NonceSeen(EXCHANGE, alice, 3),)
    )
    commands: list[Command] = [
        JoinTreasury(NOW_MS, "shard"),
        TakeAllocations(NOW_MS, "shard", (given,)),
        ReturnAllocation(NOW_MS, "shard", alice, total_of(2**70 - 7)),
        seen,
    ]
    for command in commands:
        apply(state, command)
    restored = decode_state(encode_state(state))
    assert encode_state(restored) == encode_state(state)
    assert restored.allocations == state.allocations
    assert restored.allocations.look_up(alice).given_units == 2**70
    assert restored.canceled_orders == {(EXCHANGE, a_word("gone"))}
    assert restored.maker_nonces == {(EXCHANGE, alice): 3}


def test_only_equal_states_have_equal_bytes_and_digests() -> None:
    state, same = a_trading_state("alice"), a_trading_state("alice")
    assert encode_state(state) == encode_state(same)
    assert state_digest(state) == state_digest(same)
    apply(same, a_placing(a_buy()))
    assert state_digest(state) != state_digest(same)


def test_a_closed_order_does_not_affect_the_order_of_the_others() -> None:
    state = a_trading_state("alice")
    first, second, third = some_buys(3)
    for placing in (first, second, third):
        apply(state, placing)
    apply(state, CancelOrders(NOW_MS, an_address("alice"), (second.order_id,)))
    restored = decode_state(encode_state(state))
    (market,) = restored.market_by_id.values()
    assert [order.order_id for order in market.book.orders()] == [first.order_id, third.order_id]


@pytest.mark.parametrize("version", [0, VERSION + 1])
def test_an_unknown_version_is_refused(version: int) -> None:
    body = msgspec.msgpack.decode(encode_state(State()))
    with pytest.raises(
        SnapshotUnknown, match=f"version {version}, and this program supports version {VERSION}"
    ):
        decode_state(msgspec.msgpack.encode([version, *body[1:]]))


@given(st.binary(max_size=40))
def test_bytes_that_are_no_state_are_refused(raw: bytes) -> None:
    with pytest.raises(SnapshotUnknown):
        decode_state(raw)


def test_a_body_of_the_right_version_that_is_cut_short_is_refused() -> None:
    with pytest.raises(SnapshotUnknown):
        decode_state(encode_state(a_trading_state("alice"))[:-3])


@pytest.mark.parametrize("place", [8, 10])
def test_an_entry_that_is_no_order_or_placement_is_refused(place: int) -> None:
    state = a_trading_state("alice")
    apply(state, a_placing(a_buy()))
    body = msgspec.msgpack.decode(encode_state(state))
    body[place][0] = body[place][0][:3]
    with pytest.raises(SnapshotUnknown):
        decode_state(msgspec.msgpack.encode(body))


def test_a_restored_order_shares_what_is_known_already() -> None:
    """An order that rests unmatched is its own placement; the other two keep theirs."""
    state = a_trading_state("alice", "bob")
    resting, taken = a_placing(a_buy(price_ticks=40)), a_placing(a_buy(price_ticks=50))
    taker = a_placing(a_sell("bob", 45, 15 * TOKEN))
    for placing in (resting, taken, taker):
        apply(state, placing)
    restored = decode_state(encode_state(state))
    assert restored.placed[resting.order_id] is restored.live_orders[resting.order_id]
    assert isinstance(restored.placed[taken.order_id], Placement)
    assert isinstance(restored.placed[taker.order_id], Placement)
    assert list(restored.live_orders) == [resting.order_id, taker.order_id]
    assert dict(restored.placement_by_order) == dict(state.placement_by_order)


def bytes_kept_by(work: Callable[[], object]) -> int:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept = work()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept
    return after - before


def test_a_resting_order_keeps_few_bytes() -> None:
    raws = [encode_command(each) for each in some_buys(2_000)]

    def placed() -> State:
        state = a_trading_state("alice")
        for raw in raws:
            apply(state, decode_command(raw))
        return state

    state = placed()
    snapshot = encode_state(state)
    assert bytes_kept_by(placed) / len(raws) < BYTES_PER_ORDER_MAX
    assert bytes_kept_by(lambda: decode_state(snapshot)) / len(raws) < BYTES_PER_ORDER_MAX


def test_the_newest_placements_are_kept_whole_and_the_others_as_ids() -> None:
    placings = some_buys(12)
    state = a_forgetful_state(*placings)
    assert KEPT <= len(state.placement_by_order) <= KEPT + 1
    assert list(state.placement_by_order)[-1] == placings[-1].order_id
    spent = state.market_by_id[a_word("market")].forgotten_order_ids
    assert len(spent) + len(state.placement_by_order) == 12


def test_a_recent_order_that_is_repeated_has_its_first_placement() -> None:
    placings = some_buys(12)
    state = a_forgetful_state(*placings)
    before = digest(state)
    again = apply(state, placings[-1])
    assert again.result == state.placement_by_order[placings[-1].order_id]
    assert (again.effects, digest(state)) == ([], before)


@pytest.mark.parametrize("is_canceled", [True, False])
def test_an_order_whose_placement_is_forgotten_is_never_placed_again(*, is_canceled: bool) -> None:
    placings = some_buys(12)
    state = a_forgetful_state(*placings)
    canceled = (placings[0].order_id,) * is_canceled
    apply(state, CancelOrders(NOW_MS, an_address("alice"), canceled))
    restored = decode_state(encode_state(state), KEPT)
    before = digest(restored)
    with pytest.raises(OrderPlacedBefore) as refusal:
        apply(restored, placings[0])
    assert refusal.value.details == {"order_id": placings[0].order_id}
    assert digest(restored) == before


@pytest.mark.parametrize(
    "ended",
    [
        {"nonces": (NonceSeen(EXCHANGE, an_address("alice"), 1),)},
        {"cancels": (CancelSeen(EXCHANGE, some_buys(1)[0].order_id),)},
    ],
    ids=["nonce", "cancel"],
)
def test_an_order_placed_before_is_refused_for_that_even_if_canceled_on_the_chain_since(
    ended: dict[str, Any],
) -> None:
    """The client learns that the order was placed, and can look up its state."""
    placings = some_buys(12)
    state = a_forgetful_state(*placings)
    apply(state, an_observation(**ended))
    with pytest.raises(OrderPlacedBefore):
        apply(state, placings[0])


def test_an_expired_order_is_forgotten_wholly_and_refused_as_expired() -> None:
    dated = some_buys(1, expiration_s=NOW_S + 100)
    state = a_forgetful_state(*dated)
    apply(state, ExpireOrders(NOW_MS + 40_000))
    for placing in some_buys(12):
        apply(state, placing)
    assert dated[0].order_id not in state.placement_by_order
    assert not state.market_by_id[a_word("market")].was_placed(dated[0].order_id)
    with pytest.raises(InvalidExpiration):
        apply(state, dated[0])


def test_an_order_that_has_not_expired_is_kept_as_an_id() -> None:
    dated = some_buys(1, expiration_s=NOW_S + 100)
    state = a_forgetful_state(*dated, *some_buys(12))
    with pytest.raises(OrderPlacedBefore):
        apply(state, dated[0])


def test_a_resolved_market_keeps_no_order_ids() -> None:
    placings = some_buys(12)
    state = a_forgetful_state(*placings)
    apply(state, ResolveMarket(NOW_MS, a_word("market")))
    assert not state.market_by_id[a_word("market")].forgotten_order_ids
    with pytest.raises(MarketClosed):
        apply(state, placings[0])


def test_a_forgotten_placement_of_a_resolved_market_leaves_no_id() -> None:
    state = a_forgetful_state(*some_buys(3))
    apply(state, ResolveMarket(NOW_MS, a_word("market")))
    rain = an_open_market("rain")
    apply(state, rain)
    apply(state, some_funds("alice", market="rain"))
    for salt in range(12):
        apply(
            state,
            a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt), market="rain"), market=rain),
        )
    assert not state.market_by_id[a_word("market")].forgotten_order_ids


def test_a_resolved_market_is_not_opened_again_by_a_snapshot() -> None:
    state = a_state(an_open_market(), ResolveMarket(NOW_MS, a_word("market")))
    restored = decode_state(encode_state(state))
    assert not restored.market_by_id[a_word("market")].is_open
    assert not apply(restored, an_open_market()).is_change

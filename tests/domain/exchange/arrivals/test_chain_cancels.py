"""Cancels on the chain of orders that were not placed here: a bounded number of the newest is remembered."""

from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.digest import digest
from tests.rigs.values import (
    EXCHANGE,
    a_buy,
    a_placing,
    a_trading_state,
    a_word,
    an_observation,
    an_order_id,
)

from foretell.domain.errors.exchange import OrderCanceledOnChain
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.arrivals import chain_cancels
from foretell.domain.exchange.arrivals.chain_cancels import cancels_seen, was_canceled
from foretell.domain.exchange.commands import CancelSeen, ObserveChain
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import State

KEPT_MIN = 3
NUMBERS = st.lists(st.integers(0, 30), max_size=40)


@pytest.fixture(autouse=True, scope="module")
def _few_are_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain_cancels, "CANCELS_KEPT_MIN", KEPT_MIN)
        yield


def a_cancel(number: int) -> CancelSeen:
    return CancelSeen(EXCHANGE, a_word(f"unknown {number}"))


def observing(*cancels: CancelSeen) -> ObserveChain:
    return an_observation(cancels=cancels)


def remembered(state: State) -> int:
    return len(state.canceled_orders) + len(state.canceled_earlier)


def are_remembered(state: State, cancels: Iterable[CancelSeen]) -> bool:
    return all(was_canceled(state, each.exchange, each.order_id) for each in cancels)


@pytest.mark.parametrize("at_once", [1, 1_000])
def test_attack_h5_cancels_of_orders_that_nobody_placed_do_not_grow_the_state(at_once: int) -> None:
    state = a_trading_state()
    for start in range(0, 1_000, at_once):
        apply(state, observing(*map(a_cancel, range(start, start + at_once))))
    assert remembered(state) <= 2 * KEPT_MIN
    assert are_remembered(state, map(a_cancel, range(997, 1_000)))


def test_the_newest_are_refused_and_one_that_was_forgotten_can_be_placed() -> None:
    state, order = a_trading_state(), a_buy("alice")
    apply(state, observing(CancelSeen(EXCHANGE, an_order_id(order))))
    apply(state, observing(*map(a_cancel, range(KEPT_MIN - 1))))
    with pytest.raises(OrderCanceledOnChain):
        apply(state, a_placing(order))
    apply(state, observing(*map(a_cancel, range(KEPT_MIN - 1, 2 * KEPT_MIN))))
    apply(state, a_placing(order))
    assert list(state.live_orders) == [an_order_id(order)]


@given(numbers=NUMBERS, snapshot_at=st.integers(0, 40))
def test_a_restored_state_forgets_as_the_one_before(numbers: list[int], snapshot_at: int) -> None:
    state, restored = a_trading_state(), a_trading_state()
    for at, number in enumerate(numbers):
        if at == snapshot_at:
            restored = decode_state(encode_state(restored))
        for each in (state, restored):
            apply(each, observing(a_cancel(number)))
    assert encode_state(restored) == encode_state(state)
    assert digest(restored) == digest(state)


@given(known=NUMBERS, rows=st.lists(st.integers(0, 30), unique=True))
def test_all_rows_bring_no_news_for_ever(known: list[int], rows: list[int]) -> None:
    """A reorg may have removed some of what is known, and the rows of the chain have another order."""
    state = a_trading_state()
    apply(state, observing(*map(a_cancel, known)))
    cancels = [a_cancel(number) for number in rows]
    for _ in range(3):
        apply(state, observing(*cancels_seen(state, cancels)))
    assert cancels_seen(state, cancels) == []
    assert are_remembered(state, cancels[-KEPT_MIN:])


def test_rows_of_orders_that_rest_are_seen_however_old_they_are() -> None:
    state, placing = a_trading_state(), a_placing(a_buy("alice"))
    apply(state, placing)
    first = CancelSeen(EXCHANGE, placing.order_id)
    rows = [first, *map(a_cancel, range(9))]
    assert cancels_seen(state, rows) == [first, *rows[-KEPT_MIN:]]


def test_a_state_with_few_has_the_bytes_of_earlier_versions() -> None:
    state = a_trading_state()
    apply(state, observing(*map(a_cancel, range(KEPT_MIN))))
    few = msgspec.msgpack.decode(encode_state(state))
    assert len(few) == len(msgspec.msgpack.decode(encode_state(State())))
    apply(state, observing(a_cancel(KEPT_MIN)))
    assert len(msgspec.msgpack.decode(encode_state(state))) > len(few)

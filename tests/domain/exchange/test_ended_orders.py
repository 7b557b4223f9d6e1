"""Orders that their maker canceled on the chain leave the book and are not accepted again."""

import pytest
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_trading_state,
    an_address,
    an_observation,
    an_order_id,
)

from foretell.domain.errors.exchange import OrderCanceledOnChain
from foretell.domain.errors.order import InvalidOrderNonce
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import CancelSeen, NonceSeen
from foretell.domain.exchange.effects import BookChanged, CloseReason, OrderClosed
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.observe_chain import split_observation

ALICE = an_address("alice")


def test_a_canceled_order_leaves_the_book_and_frees_what_it_reserved() -> None:
    state = a_trading_state()
    placing = a_placing(a_buy("alice"))
    apply(state, placing)
    seen = CancelSeen(EXCHANGE, placing.order_id)
    closed, changed = apply(state, an_observation(cancels=(seen,))).effects
    assert isinstance(closed, OrderClosed)
    assert closed.reason is CloseReason.CANCELED_ON_CHAIN
    assert isinstance(changed, BookChanged)
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units == 0
    assert apply(state, an_observation(cancels=(seen,))).effects == []
    assert state.canceled_orders == set()


def test_an_order_canceled_on_the_chain_before_its_placement_is_refused() -> None:
    state, order = a_trading_state(), a_buy("alice")
    apply(state, an_observation(cancels=(CancelSeen(EXCHANGE, an_order_id(order)),)))
    with pytest.raises(OrderCanceledOnChain, match=an_order_id(order)):
        apply(state, a_placing(order))
    assert state.live_orders == {}
    apply(state, a_placing(a_buy("alice", salt="2")))


def test_a_cancel_at_another_exchange_does_not_count() -> None:
    state, placing = a_trading_state(), a_placing(a_buy("alice"))
    apply(state, placing)
    later = a_buy("alice", salt="2")
    ids = (placing.order_id, an_order_id(later))
    elsewhere = tuple(CancelSeen(NEG_RISK_EXCHANGE, each) for each in ids)
    assert apply(state, an_observation(cancels=elsewhere)).effects == []
    apply(state, a_placing(later))
    assert set(state.live_orders) == set(ids)


def test_a_raised_nonce_closes_the_orders_of_its_maker_with_a_lower_one() -> None:
    state = a_trading_state()
    old = [a_placing(a_buy("alice", 40)), a_placing(a_sell("alice", 60))]
    others = [a_placing(a_buy("alice", 30, nonce=1)), a_placing(a_buy("bob", 30))]
    for placing in (*old, *others):
        apply(state, placing)
    effects = apply(state, an_observation(nonces=(NonceSeen(EXCHANGE, ALICE, 1),))).effects
    closed = [each for each in effects if isinstance(each, OrderClosed)]
    assert {each.order_id for each in closed} == {placing.order_id for placing in old}
    assert {each.reason for each in closed} == {CloseReason.NONCE_RAISED}
    assert set(state.live_orders) == {placing.order_id for placing in others}


def test_a_nonce_at_another_exchange_closes_no_order() -> None:
    state, placing = a_trading_state(), a_placing(a_buy("alice"))
    apply(state, placing)
    seen = NonceSeen(NEG_RISK_EXCHANGE, ALICE, 1)
    assert apply(state, an_observation(nonces=(seen,))).effects == []
    assert set(state.live_orders) == {placing.order_id}


def test_an_order_with_an_old_nonce_is_refused_until_a_reorg_lowers_the_nonce() -> None:
    state, placing = a_trading_state(), a_placing(a_buy("alice"))
    apply(state, an_observation(nonces=(NonceSeen(EXCHANGE, ALICE, 2),)))
    with pytest.raises(InvalidOrderNonce, match="2"):
        apply(state, placing)
    apply(state, an_observation(nonces=(NonceSeen(EXCHANGE, ALICE, 0),)))
    apply(state, placing)
    assert set(state.live_orders) == {placing.order_id}


def test_a_canceled_order_stays_closed_when_a_reorg_removes_the_block_of_the_cancel() -> None:
    state, placing = a_trading_state(), a_placing(a_buy("alice", 50, 10 * TOKEN))
    apply(state, placing)
    apply(state, an_observation(cancels=(CancelSeen(EXCHANGE, placing.order_id),)))
    apply(state, an_observation(block_number=0))
    assert apply(state, placing).effects == []
    assert state.live_orders == {}


def test_cancels_and_nonces_are_split_into_parts_too() -> None:
    ids = [an_order_id(a_buy("alice", salt=str(salt))) for salt in range(3)]
    whole = an_observation(
        cancels=tuple(CancelSeen(EXCHANGE, each) for each in ids),
        nonces=(NonceSeen(EXCHANGE, ALICE, 1),),
    )
    parts = split_observation(whole, 2)
    assert [(len(part.cancels), len(part.nonces)) for part in parts] == [(2, 0), (1, 1)]
    state = a_trading_state()
    for part in parts:
        apply(state, part)
    assert state.canceled_orders == {(EXCHANGE, each) for each in ids}
    assert state.maker_nonces == {(EXCHANGE, ALICE): 1}

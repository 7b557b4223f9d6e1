"""Decisions: what an outcome is made of, here and in another process."""

import msgspec
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_trading_state,
    a_word,
    an_address,
    an_open_market,
)

from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import CancelOrders, Command, OpenMarket
from foretell.domain.exchange.decision import Canceled, Decision, Done, Placed
from foretell.domain.exchange.effects import CloseReason, MarketOpened, OrderPlaced
from foretell.domain.exchange.order import OrderStatus, OrderTerms
from foretell.domain.exchange.state import Placement, State


def elsewhere(command: Command, outcome: Outcome) -> Outcome:
    """Return the outcome as a process makes it that got the command and the encoded decision."""
    encoded = msgspec.msgpack.encode(outcome.decision)
    decision = msgspec.msgpack.decode(encoded, type=Decision)
    return Outcome(None, None, outcome.is_change, command, decision)


def assert_same_elsewhere(state: State, command: Command, kind: type) -> Outcome:
    outcome = apply(state, command)
    assert outcome.has_effects
    assert isinstance(outcome.decision, kind)
    other = elsewhere(command, outcome)
    assert other == outcome
    assert other.has_effects
    return other


def test_every_kind_of_outcome_is_made_of_its_command_and_decision() -> None:
    state = a_trading_state()
    resting = a_placing(a_buy("alice", 50, 10 * TOKEN))
    assert_same_elsewhere(state, resting, Placed)
    assert_same_elsewhere(state, a_placing(a_sell("bob", 50, 6 * TOKEN)), Placed)
    cancel = CancelOrders(resting.at_ms, an_address("alice"), (resting.order_id,))
    assert_same_elsewhere(state, cancel, Canceled)
    opened = an_open_market("another")
    outcome = assert_same_elsewhere(state, opened, Done)
    assert (outcome.result, outcome.effects) == (None, [MarketOpened(opened)])


def test_a_command_that_changes_nothing_has_no_effects() -> None:
    state = a_trading_state()
    opened = next(iter(state.market_by_id.values())).opened
    assert isinstance(opened, OpenMarket)
    assert not apply(state, opened).has_effects


def test_an_order_of_less_than_a_lot_that_meets_no_other_is_closed_as_dust() -> None:
    """A lot at 33 of 100 is 100 units."""
    state = a_trading_state()
    placing = a_placing(a_buy("alice", 33, 10 * TOKEN), terms=OrderTerms(33, 100, 99, None))
    outcome = assert_same_elsewhere(state, placing, Placed)
    assert isinstance(outcome.result, Placement)
    assert outcome.result.status is OrderStatus.MATCHED
    [placed] = outcome.effects
    assert isinstance(placed, OrderPlaced)
    assert placed.close_reason is CloseReason.DUST
    assert not state.live_orders
    assert state.placement_by_order[placing.order_id] == outcome.result


def test_a_cancel_without_subscribers_has_no_levels() -> None:
    state = a_trading_state()
    resting = a_placing(a_buy("alice", 50, 10 * TOKEN))
    apply(state, resting)
    state.tracks_book_changes = False
    canceled = apply(state, CancelOrders(resting.at_ms, an_address("alice"), (resting.order_id,)))
    assert isinstance(canceled.decision, Canceled)
    assert canceled.decision.changed == ()
    assert a_word("other") not in state.live_orders

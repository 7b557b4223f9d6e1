"""Application of commands to the state: `apply` is the whole engine.

It either refuses and changes nothing, or changes the state and returns the effects. It does no I/O
and reads no clock, so the same commands in the same order give the same state.
"""

from typing import assert_never

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal
from foretell.domain.exchange.commands import (
    CancelOrders,
    ChangeTick,
    Command,
    ExpireOrders,
    JoinTreasury,
    ObserveChain,
    OpenMarket,
    PlaceOrder,
    ResolveMarket,
    ReturnAllocation,
    SplitTrade,
    TakeAllocations,
)
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    MarketOpened,
    MarketResolved,
    TickChanged,
)
from foretell.domain.exchange.move_allocations import move_allocations
from foretell.domain.exchange.observe_chain import observe_chain
from foretell.domain.exchange.place_order import place_order
from foretell.domain.exchange.split_trade import split_trade
from foretell.domain.exchange.state import Market, Placement, State
from foretell.domain.exchange.tick_size import check_finer
from foretell.domain.values.hexadecimal import Bytes32

NOT_CANCELED = "order can't be found - already canceled or matched"
"""Clients of the ecosystem match these words literally."""


class Cancellation(msgspec.Struct, frozen=True):
    """The orders that were canceled, and why the others were not."""

    canceled: tuple[Bytes32, ...]
    not_canceled: dict[Bytes32, str]


Result = Placement | Cancellation | AllocationTotal | None
"""The reply to a command."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a command; the journal needs only commands that are a change."""

    result: Result
    effects: list[Effect]
    is_change: bool


def apply(state: State, command: Command) -> Outcome:
    """Apply the command to the state and return its outcome, or refuse."""
    outcome = _outcome(state, command)
    if outcome.is_change and command.at_ms > state.latest_ms:
        state.latest_ms = command.at_ms
    return outcome


def _outcome(state: State, command: Command) -> Outcome:
    result: Result = None
    match command:
        case PlaceOrder():
            result, effects = place_order(state, command)
        case CancelOrders():
            result, effects = _cancel(state, command)
        case JoinTreasury() | TakeAllocations() | ReturnAllocation():
            result, effects = move_allocations(state, command)
        case ObserveChain():
            return Outcome(None, observe_chain(state, command), is_change=True)
        case _:
            effects = _effects(state, command)
    return Outcome(result, effects, bool(effects))


def _effects(
    state: State, command: ExpireOrders | SplitTrade | OpenMarket | ChangeTick | ResolveMarket
) -> list[Effect]:
    """Apply a command that has no reply."""
    match command:
        case ExpireOrders():
            return _expire(state, command)
        case SplitTrade():
            return split_trade(state, command)
        case OpenMarket():
            return _open(state, command)
        case ChangeTick():
            return _change_tick(state, command)
        case ResolveMarket():
            return _resolve(state, command)
        case _:
            assert_never(command)


def _cancel(state: State, command: CancelOrders) -> tuple[Cancellation, list[Effect]]:
    effects: list[Effect] = []
    canceled, not_canceled = [], {}
    for order_id in dict.fromkeys(command.order_ids):
        order = state.live_orders.get(order_id)
        if order is None or order.signer != command.signer:
            not_canceled[order_id] = NOT_CANCELED
        else:
            effects.append(state.close(order, CloseReason.CANCELED, command.at_ms))
            canceled.append(order_id)
    effects += state.book_changes(command.at_ms)
    return Cancellation(tuple(canceled), not_canceled), effects


def _expire(state: State, command: ExpireOrders) -> list[Effect]:
    due = state.due_orders(command.at_ms // 1000)
    effects: list[Effect] = [
        state.close(order, CloseReason.EXPIRED, command.at_ms) for order in due
    ]
    return [*effects, *state.book_changes(command.at_ms)]


def _open(state: State, command: OpenMarket) -> list[Effect]:
    if command.condition_id in state.market_by_id:
        return []
    state.add(Market(command))
    return [MarketOpened(command)]


def _change_tick(state: State, command: ChangeTick) -> list[Effect]:
    market = state.market_by_id.get(command.condition_id)
    if market is None or not market.is_open:
        return []
    before = market.rules.ticks_per_one
    if command.ticks_per_one == before:
        return []
    check_finer(before, command.ticks_per_one)
    market.change_tick(command.ticks_per_one)
    assert market.book.ticks_per_one == market.rules.ticks_per_one
    market.changed_at_ms = command.at_ms
    return [TickChanged(command.condition_id, before, command.ticks_per_one, command.at_ms)]


def _resolve(state: State, command: ResolveMarket) -> list[Effect]:
    market = state.market_by_id.get(command.condition_id)
    if market is None or not market.is_open:
        return []
    state.end(market, command.at_ms)
    effects: list[Effect] = [
        state.close(order, CloseReason.MARKET_RESOLVED, command.at_ms)
        for order in list(market.book.orders())
    ]
    assert market.book.best_bid() is None, "a resolved market has no orders"
    assert market.book.best_ask() is None, "a resolved market has no orders"
    resolved = MarketResolved(command.condition_id, command.at_ms)
    return [*effects, *state.book_changes(command.at_ms), resolved]

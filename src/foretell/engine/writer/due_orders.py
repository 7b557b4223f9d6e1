"""Closing of expired orders and release of delayed ones before an order arrives.

Many orders may expire in one second. A turn of the event loop closes a limited
number of them, so that everybody else is served in between. An order that would meet one which is due and still
rests waits for the next turn, and so do later orders of its market.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import structs

from foretell.domain.exchange.apply import Outcome
from foretell.domain.exchange.arrivals.due_orders import due_orders_met
from foretell.domain.exchange.commands import Command, ExpireOrders, PlaceOrder, ReleaseOrder
from foretell.domain.exchange.delays.delayed_orders import due_releases
from foretell.domain.exchange.effects import OrderClosed
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import Bytes32

EXPIRED_PER_COMMAND_MAX: Final = 250
"""How many expired orders one command closes, and each turn: the earliest, and as many in the way of orders."""

Commit = Callable[[Command], Outcome]
"""Applies a command of the engine's own, and appends it to the journal."""
IsBehind = Callable[[ReleaseOrder], bool]
"""Returns whether settlement is so far behind that a delayed order may not match at its release."""


def _is_never_behind(_: ReleaseOrder) -> bool:
    return False


class DueOrders:
    """The orders that are due, and the orders that wait until those in their way are closed."""

    def __init__(
        self,
        state: Callable[[], State],
        commit: Commit,
        per_command_max: int = EXPIRED_PER_COMMAND_MAX,
    ) -> None:
        self._state = state
        self._commit = commit
        self.is_behind_for: IsBehind = _is_never_behind
        """The rule of a host for orders that are released: the command bears its outcome."""
        self.per_command_max = per_command_max
        self._earliest_left = self._met_left = per_command_max
        self._next_turn: asyncio.Handle | None = None
        self._waiting_by_market: dict[Bytes32, list[Callable[[], None]]] = {}
        self.waiting_count = 0

    def precede(self, command: PlaceOrder) -> bool:
        """Close and release what precedes an order; return False if the order must wait for the next turn."""
        state, at_ms = self._state(), command.at_ms
        if not (self._waiting_by_market or state.delays.orders or is_due(state, at_ms)):
            return True
        if command.condition_id in self._waiting_by_market:
            return False
        self._close_earliest(state, at_ms)
        blocked = self._release(state, at_ms) if state.delays.orders else ()
        return command.condition_id not in blocked and self._clear_way(state, command)

    def wait(self, condition_id: Bytes32, resume: Callable[[], None]) -> None:
        """Call `resume` in the next turn, which may have the order wait again."""
        self._waiting_by_market.setdefault(condition_id, []).append(resume)
        self.waiting_count += 1
        self._watch_turn()

    def resume(self) -> None:
        """Begin a turn: what waits is tried again, in the order of its market."""
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        self._earliest_left = self._met_left = self.per_command_max
        waiting, self._waiting_by_market, self.waiting_count = self._waiting_by_market, {}, 0
        for resumes in waiting.values():
            for resume in resumes:
                resume()

    def release(self, at_ms: int) -> bool:
        """Release the orders whose delay is over; return False if some of them must wait for the next turn."""
        return not self._release(self._state(), at_ms)

    def _close_earliest(self, state: State, at_ms: int) -> None:
        if self._earliest_left and is_due(state, at_ms):
            outcome = self._commit(ExpireOrders(at_ms, self._earliest_left))
            self._earliest_left -= sum(isinstance(each, OrderClosed) for each in outcome.effects)
            self._watch_turn()

    def _clear_way(self, state: State, command: PlaceOrder) -> bool:
        """Close what is due and in the way of an order; return whether that was all."""
        if not is_due(state, command.at_ms):
            return True
        due, is_all = due_orders_met(state, command, self._met_left)
        if due:
            order_ids = tuple([order.order_id for order in due])
            self._commit(ExpireOrders(command.at_ms, None, order_ids))
            self._met_left -= len(due)
            self._watch_turn()
        return is_all

    def _release(self, state: State, at_ms: int) -> set[Bytes32]:
        """Release the orders whose delay is over, and return the markets in which some wait for a way."""
        blocked: set[Bytes32] = set()
        for command in due_releases(state, at_ms):
            if command.condition_id in blocked or not self._clear_way(state, command):
                blocked.add(command.condition_id)
            else:
                is_behind = self.is_behind_for(command)
                self._commit(structs.replace(command, is_settlement_behind=is_behind))
        return blocked

    def _watch_turn(self) -> None:
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self.resume)


def is_due(state: State, at_ms: int) -> bool:
    """Return whether an order is due that still rests."""
    expiry_s = state.next_expiry_s()
    return expiry_s is not None and expiry_s * 1000 <= at_ms

"""Application of commands to the state: `apply` is the whole engine.

It either refuses and changes nothing, or changes the state and returns the effects. It does no I/O
and reads no clock, so the same commands in the same order give the same state.
"""

from itertools import islice
from typing import Final, assert_never

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal
from foretell.domain.exchange.arrivals.order_limits import OrderLimits
from foretell.domain.exchange.commands import (
    BarWallet,
    CancelOrders,
    ChangeTick,
    Command,
    DelayMarket,
    ExpireOrders,
    HaltMarket,
    JoinTreasury,
    ObserveChain,
    OpenMarket,
    PlaceOrder,
    ReleaseOrder,
    ResolveMarket,
    ReturnAllocation,
    SplitTrade,
    TakeAllocations,
)
from foretell.domain.exchange.decision import (
    Canceled,
    ClosedOrder,
    Decision,
    Done,
    Placed,
    book_changed,
    changed_level,
    closed_order,
    effects_of,
    emptied_levels,
)
from foretell.domain.exchange.delays.delayed_orders import (
    close_delayed,
    closed_delayed,
    delay_market,
    take_delayed,
)
from foretell.domain.exchange.delays.release_order import release_order
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    MarketOpened,
    MarketResolved,
    TickChanged,
)
from foretell.domain.exchange.move_allocations import move_allocations
from foretell.domain.exchange.observe_chain import observe_chain
from foretell.domain.exchange.place_order import first_placement, place_order, placement_of
from foretell.domain.exchange.split_trade import split_trade
from foretell.domain.exchange.state import Market, Placement, State
from foretell.domain.exchange.tick_size import check_finer
from foretell.domain.exchange.wallets.bar_wallet import bar_wallet
from foretell.domain.values.hexadecimal import Bytes32

NOT_CANCELED = "order can't be found - already canceled or matched"
"""Clients of the ecosystem match these words literally."""


class Cancellation(msgspec.Struct, frozen=True):
    """The orders that were canceled, and why the others were not."""

    canceled: tuple[Bytes32, ...]
    not_canceled: dict[Bytes32, str]


RareCommand = (
    OpenMarket
    | ChangeTick
    | ResolveMarket
    | ExpireOrders
    | ObserveChain
    | JoinTreasury
    | TakeAllocations
    | ReturnAllocation
    | SplitTrade
    | BarWallet
    | HaltMarket
    | DelayMarket
)
"""All commands but those of traders, which place and cancel orders."""

Result = Placement | Cancellation | AllocationTotal | None
"""The reply to a command."""


_CHANGE: Final = True
_NOTHING_CANCELED: Final = Canceled((), ())


class Outcome(msgspec.Struct, eq=False, gc=False):
    """The result of a command; the journal needs only commands that are a change.

    `result` and `effects` are made when they are first read, of the command and the decision.
    """

    _result: Result
    _effects: list[Effect] | None
    is_change: bool
    command: Command | None = None
    _decision: Decision | None = None

    @property
    def result(self) -> Result:
        """The reply to the command."""
        if self._result is None and self._decision is not None:
            self._result = _result_of(self.command, self._decision)
        return self._result

    @property
    def effects(self) -> list[Effect]:
        """The effects of the command, from which streams and tables are built."""
        if self._effects is None:
            assert self.command is not None
            assert self._decision is not None
            self._effects = effects_of(self.command, self._decision)
        return self._effects

    @property
    def has_effects(self) -> bool:
        """Whether the command had effects; none is made to answer this."""
        return self._effects is None or bool(self._effects)

    @property
    def decision(self) -> Decision:
        """The compact form of the effects, for another process that makes them."""
        return Done(self.effects) if self._decision is None else self._decision

    def __eq__(self, other: object) -> bool:  # type: ignore[explicit-override] # 3.11 has none
        """Return whether both have the same result and effects, made of a decision or given."""
        return isinstance(other, Outcome) and _read(self) == _read(other)

    __hash__ = None  # type: ignore[assignment]


def _read(outcome: Outcome) -> tuple[Result, list[Effect], bool]:
    return outcome.result, outcome.effects, outcome.is_change


def _result_of(command: Command | None, decision: Decision) -> Result:
    match decision:
        case Placed():
            assert isinstance(command, PlaceOrder)
            return placement_of(command, decision)
        case Canceled():
            assert isinstance(command, CancelOrders)
            return cancellation_of(command, decision)
        case _:
            return None


def apply(state: State, command: Command, limits: OrderLimits | None = None) -> Outcome:
    """Apply the command to the state and return its outcome, or refuse.

    `limits` are for a command that arrives: one of the journal was within them.
    """
    decision: Decision | None
    if type(command) is PlaceOrder:
        decision = place_order(state, command, limits)
        if decision is None:
            return Outcome(first_placement(state, command), [], is_change=False)
    elif isinstance(command, CancelOrders):
        decision = _cancel(state, command)
        if decision is None:
            return Outcome(cancellation_of(command, _NOTHING_CANCELED), [], is_change=False)
    elif isinstance(command, ReleaseOrder):
        decision = release_order(state, command)
        if decision is None:
            return Outcome(None, [], is_change=False)
    else:
        assert not isinstance(command, PlaceOrder), "it is one of the first two"
        return _apply_rare(state, command)
    at_ms = command.at_ms
    if at_ms > state.latest_ms:  # noqa: PLR1730 - calling `max` costs six times as much
        state.latest_ms = at_ms
    return Outcome(None, None, _CHANGE, command, decision)


def _apply_rare(state: State, command: RareCommand) -> Outcome:
    outcome = _outcome(state, command)
    if outcome.is_change and command.at_ms > state.latest_ms:
        state.latest_ms = command.at_ms
    return outcome


def _outcome(state: State, command: RareCommand) -> Outcome:
    """Return the outcome of a command that is rare."""
    result: Result = None
    match command:
        case JoinTreasury() | TakeAllocations() | ReturnAllocation():
            result, effects = move_allocations(state, command)
        case ObserveChain():
            return Outcome(None, observe_chain(state, command), is_change=True)
        case BarWallet():
            barred = bar_wallet(state, command)
            return Outcome(None, barred or [], is_change=barred is not None)
        case HaltMarket():
            return Outcome(None, [], is_change=_halt(state, command))
        case DelayMarket():
            return Outcome(None, [], is_change=delay_market(state, command))
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


def _cancel(state: State, command: CancelOrders) -> Canceled | None:
    """Return the canceled orders, None if there are none."""
    live_orders, signer, orders = state.live_orders, command.signer, []
    for order_id in command.order_ids:
        order = live_orders.get(order_id)
        if order is not None and order.signer == signer:
            order.level.side.remove(order)
            state.release(order)
            orders.append(order)
    delayed = _cancel_delayed(state, command) if state.delays.orders else []
    if not orders and not delayed:
        return None
    if len(orders) == 1 and not delayed:
        order = orders[0]
        market = state.market_by_id[order.condition_id]
        market.changed_at_ms = command.at_ms
        if not (state.tracks_book_changes and market.is_open):
            return Canceled((closed_order(order),), ())
        changed = changed_level(order.condition_id, market.book, order.level)
        return Canceled((closed_order(order),), (changed,))
    touched = [(order.condition_id, order.level) for order in orders]
    changes = state.changed_levels(touched, command.at_ms)
    return Canceled([*map(closed_order, orders), *delayed], changes)


def _cancel_delayed(state: State, command: CancelOrders) -> list[ClosedOrder]:
    """Remove the delayed orders that the command names, and return them."""
    closed = []
    for order_id in command.order_ids:
        order = state.delays.orders.get(order_id)
        if order is not None and order.command.order.signer == command.signer:
            take_delayed(state, order_id)
            closed.append(closed_delayed(order))
    return closed


def cancellation_of(command: CancelOrders, canceled: Canceled) -> Cancellation:
    """Return the reply to the command that canceled orders."""
    order_ids = tuple([order.order_id for order in canceled.orders])
    others = dict.fromkeys(command.order_ids, NOT_CANCELED)
    for order_id in order_ids:
        del others[order_id]
    return Cancellation(order_ids, others)


def _halt(state: State, command: HaltMarket) -> bool:
    """Halt a market or end its halt; return whether that changed anything."""
    halted, condition_id = state.halted_markets, command.condition_id
    if (condition_id in halted) is command.is_halted:
        return False
    if command.is_halted:
        halted[condition_id] = None
    else:
        del halted[condition_id]
    return True


def _expire(state: State, command: ExpireOrders) -> list[Effect]:
    now_s = command.at_ms // 1000
    if command.order_ids:
        due = [state.live_orders[order_id] for order_id in command.order_ids]
        assert all(order.is_due(now_s) for order in due), "only orders that are due expire"
    else:
        due = state.due_orders(now_s, command.orders_max)
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
    if market is None:
        return []
    at_ms, reason, resting_max = command.at_ms, CloseReason.MARKET_RESOLVED, command.orders_max
    was_open = market.is_open
    emptied = emptied_levels(command.condition_id, market.book) if was_open else None
    resting = list(islice(market.book.orders(), resting_max))
    delayed_max = None if resting_max is None else resting_max - len(resting)
    delayed = list(islice(state.delays.in_market(command.condition_id), delayed_max))
    if was_open:
        state.end(market, at_ms)
    effects: list[Effect] = [state.close(order, reason, at_ms) for order in resting]
    effects += [close_delayed(state, order, reason, at_ms) for order in delayed]
    effects += state.book_changes(at_ms)
    if emptied is not None and emptied.levels and state.tracks_book_changes:
        effects.append(book_changed(emptied, at_ms))
    if was_open:
        effects.append(MarketResolved(command.condition_id, at_ms))
    assert resting_max is not None or not state.has_orders(market), (
        "a resolved market has no orders"
    )
    return effects

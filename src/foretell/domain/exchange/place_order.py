"""Placement of an order: checked in full first, then matched, then rested or closed.

Every order comes through these functions, so they are written for speed where it was measured: enum
members and constants are names of the module, structs are built by position, small sums are written
out instead of called.
"""

from collections.abc import Sequence
from typing import Final

from foretell.domain.errors.exchange import (
    MarketClosed,
    OrderDuplicated,
    PostOnlyWouldCross,
    UnknownMarket,
)
from foretell.domain.exchange.arrivals.order_limits import (
    ORDER_LIMITS,
    OrderLimits,
    check_open_orders,
)
from foretell.domain.exchange.arrivals.reach import (
    check_own_orders,
    check_reach,
    taker_of,
    unmatched,
)
from foretell.domain.exchange.arrivals.standing import check_standing
from foretell.domain.exchange.book import Level, Match
from foretell.domain.exchange.commands import PlaceOrder, ReleaseOrder
from foretell.domain.exchange.decision import (
    ChangedLevels,
    ClosedOrder,
    Placed,
    changed_level,
    changed_levels,
    closed_order,
)
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.execute_match import execute_match
from foretell.domain.exchange.ledger import COLLATERAL, NOBODY, LiveOrder
from foretell.domain.exchange.matching import carry_out, plan_match
from foretell.domain.exchange.order import (
    OrderStatus,
    OrderTerms,
    OrderType,
    Side,
    check_expiration,
    leaves_book_at_s,
)
from foretell.domain.exchange.signing.stops import standing_of
from foretell.domain.exchange.state import Market, Placement, State
from foretell.domain.exchange.trade_references import newest_trade_ids
from foretell.domain.exchange.waiting.delays import DelayedOrder

_BUY: Final = Side.BUY
_LIVE: Final = OrderStatus.LIVE
_MATCHED_AT_ONCE: Final = OrderStatus.MATCHED
_FILLED: Final = CloseReason.FILLED
_DUST: Final = CloseReason.DUST
_KILLED: Final = CloseReason.KILLED
_FILL_OR_KILL: Final = OrderType.FOK


def place_order(
    state: State, command: PlaceOrder, limits: OrderLimits | None = None
) -> Placed | None:
    """Return what was decided about the order, or refuse it and change nothing.

    A repeated order is not placed again: there is nothing to decide. `limits` are for an order that
    arrives; a command of the journal has none.
    """
    order_id, at_ms = command.order_id, command.at_ms
    if order_id in state.placed:
        first_placement(state, command)
        return None
    market = _open_market(state, command)
    if command.order.expiration_s:
        check_expiration(command.order, max(state.latest_ms, at_ms) // 1000, is_engine=True)
    arrival, need_units = _arrival(state, market, command)
    level, size_units = arrival.level, arrival.size_units
    side = level.side
    crosses = level.rank + side.opposite.best_rank >= side.ticks_per_one
    # Hardly any wallet has so many orders that a limit could refuse one more.
    if limits is not None and (
        arrival.account.wallet.orders_count >= limits.crossed or state.delays.orders
    ):
        _check_limits(state, command, arrival, limits, crosses=crosses)
    if crosses:
        return _match(state, market, command, arrival, need_units)
    if not command.order_type.may_rest:
        raise unmatched(command)
    if size_units < level.lot_units:
        return _close_unmatched(state, command, size_units)
    state.rest(arrival, need_units)
    state.remember(order_id, arrival)
    market.changed_at_ms = at_ms
    if state.tracks_book_changes:
        changed = changed_level(arrival.condition_id, market.book, level)
        return Placed(size_units, 0, 0, None, changed)
    return Placed(size_units, 0, 0, None, None)


def check_order(state: State, command: PlaceOrder, limits: OrderLimits = ORDER_LIMITS) -> None:
    """Refuse an order that would be refused if it arrived now; nothing changes, and no resting order is met.

    The expiration is not checked. A repeated order is taken.
    """
    if command.order_id in state.placed:
        first_placement(state, command)
        return
    market = _open_market(state, command)
    arrival, _ = _arrival(state, market, command)
    if command.order_type.may_rest:
        check_open_orders(state, arrival, limits)
    check_reach(command, arrival, limits.crossed)


def first_placement(state: State, command: PlaceOrder) -> Placement:
    """Return the placement of a repeated order, or refuse another type or owner for it."""
    first = state.placement_by_order[command.order_id]
    if (first.owner, first.order_type) != (command.owner, command.order_type):
        raise OrderDuplicated(command.order_id)
    return first


def placement_of(command: PlaceOrder, placed: Placed) -> Placement:
    """Return the reply to the command that placed an order."""
    is_buy = command.order.side is _BUY
    return Placement(
        command.order_id,
        command.condition_id,
        command.owner,
        command.order_type,
        leaves_book_at_s(command.order),
        placed.status,
        placed.cost_units if is_buy else placed.matched_units,
        placed.matched_units if is_buy else placed.cost_units,
        tuple([trade.trade_id for trade in placed.trades]),
    )


def _open_market(state: State, command: PlaceOrder) -> Market:
    """Return the market of an order, or refuse the order if it is unknown or closed."""
    market = state.market_by_id.get(command.condition_id)
    if market is None:
        raise UnknownMarket(command.condition_id)
    if not market.is_open:
        raise MarketClosed(command.condition_id, "resolved")
    return market


def _arrival(  # noqa: PLR0915 - every order is made here, and fifteen statements fill its fields
    state: State, market: Market, command: PlaceOrder
) -> tuple[LiveOrder, int]:
    """Return the order as it would rest with its whole size, and the units that it needs.

    It is in no book yet. It is refused if it may not be placed, or if its funds do not suffice.
    """
    signed, terms, book, opened = command.order, command.terms, market.book, market.opened
    ticks_per_one, price_ticks, size_units = book.ticks_per_one, terms.price_ticks, terms.size_units
    if terms.ticks_per_one != ticks_per_one:
        price_ticks = _refined_ticks(terms, ticks_per_one)
    if (
        market.forgotten_order_ids
        or state.canceled_orders
        or state.maker_nonces
        or state.maker_stops
        or state.barred_wallets
        or state.halted_markets
    ):
        check_standing(state, market, command)
    wallet = state.ledger.accounts_by_wallet.get(signed.maker, NOBODY)
    if signed.side is _BUY:
        side, rank, asset = book.bids if command.is_yes else book.asks, price_ticks, COLLATERAL
        allowed_units = wallet.collateral_allowance_by_exchange.get(opened.exchange, 0)
        if size_units is None:
            size_units, need_units = signed.taker_amount, terms.budget_units or 0
        else:
            need_units = -(-size_units * price_ticks // ticks_per_one)
    else:
        assert size_units is not None, "only a buyer has a budget"
        side, asset = (
            (book.asks, opened.token_yes) if command.is_yes else (book.bids, opened.token_no)
        )
        rank, need_units = ticks_per_one - price_ticks, size_units
        allowed_units = wallet.token_allowance_by_exchange.get(opened.exchange, 0)
    account = wallet.account_by_asset.get(asset)
    if account is None:
        raise state.ledger.shortfall(signed.maker, opened.exchange, asset, need_units)
    used_units = account.debit_units + account.reserved_units + need_units
    if used_units > allowed_units or used_units > account.confirmed_units + account.credit_units:
        raise state.ledger.shortfall(signed.maker, opened.exchange, asset, need_units)
    arrival = LiveOrder()
    arrival.wallet = wallet
    arrival.account = account
    arrival.level = side.levels[rank] or side.level(rank)
    arrival.remaining_units = arrival.size_units = size_units
    arrival.order_id = command.order_id
    arrival.condition_id = opened.condition_id
    arrival.signer = signed.signer
    arrival.owner = command.owner
    arrival.side = signed.side
    arrival.order_type = command.order_type
    arrival.leaves_at_s = leaves_book_at_s(signed) if signed.expiration_s else None
    arrival.placed_at_ms = command.at_ms
    arrival.nonce = signed.nonce if signed.v2 is None else standing_of(signed)
    arrival.trade_ids = ()
    return arrival, need_units


def _refined_ticks(terms: OrderTerms, ticks_per_one: int) -> int:
    """Return the limit in ticks of the book, which became finer than those of the terms."""
    factor, rest = divmod(ticks_per_one, terms.ticks_per_one)
    assert rest == 0, "a tick only becomes finer"
    return terms.price_ticks * factor


def _check_limits(
    state: State, command: PlaceOrder, arrival: LiveOrder, limits: OrderLimits, *, crosses: bool
) -> None:
    """Refuse an order that exceeds a limit of its wallet; no walk over the orders of others is needed."""
    if command.order_type.may_rest or command.condition_id in state.delays.ms_by_market:
        check_open_orders(state, arrival, limits)
    wallet = arrival.account.wallet
    if (
        crosses
        and not command.is_post_only
        and wallet.orders_count_in(arrival.condition_id) > limits.crossed
    ):
        check_own_orders(command, arrival, limits.crossed)


def _plan(command: PlaceOrder, arrival: LiveOrder) -> Match[LiveOrder]:
    """Return what the order meets in the present book, or refuse it.

    An order that must be filled whole, and would not be, is refused before a resting order is looked at.
    """
    if command.order_type is _FILL_OR_KILL:
        check_reach(command, arrival)
    plan = plan_match(arrival.level.side.opposite, taker_of(command, arrival))
    if command.is_post_only and plan.crosses:
        raise PostOnlyWouldCross
    if not command.order_type.may_rest and not plan.fills:
        raise unmatched(command)
    assert plan.is_exhausted or command.order_type is not _FILL_OR_KILL, "it is filled whole"
    return plan


def _is_to_wait(state: State, command: PlaceOrder) -> bool:
    """Return whether an order that crosses the book is held; an order that may not match is refused."""
    is_new = not (command.is_post_only or isinstance(command, ReleaseOrder))
    return is_new and command.condition_id in state.delays.ms_by_market


def _delay(state: State, command: PlaceOrder, arrival: LiveOrder, need_units: int) -> Placed:
    """Hold an order until its release; it reserves what it needs."""
    market = state.market_by_id[command.condition_id]
    due_ms = command.at_ms + state.delays.ms_by_market[command.condition_id]
    asset = market.asset_given(arrival.side, is_yes=command.is_yes)
    arrival.account.reserved_units += need_units
    state.delays.add(DelayedOrder(command, due_ms, asset, need_units))
    placed = Placed(arrival.size_units, 0, 0, None, None, is_delayed=True)
    state.remember(command.order_id, placement_of(command, placed))
    return placed


def _close_unmatched(state: State, command: PlaceOrder, size_units: int) -> Placed:
    """Close an order that crosses no other and is less than a lot: it could never trade."""
    placed = Placed(size_units, 0, 0, _DUST, None)
    state.remember(command.order_id, placement_of(command, placed))
    return placed


def _match(
    state: State, market: Market, command: PlaceOrder, arrival: LiveOrder, need_units: int
) -> Placed:
    """Match an order that crosses the book, and rest or close its remainder; or delay or refuse it."""
    if state.delays.ms_by_market and _is_to_wait(state, command):
        return _delay(state, command, arrival, need_units)
    match = _meet(command, arrival)
    own_orders = _released(state, match.own_orders) if match.own_orders else ()
    fills = match.fills
    trades, matched_units, cost_units = execute_match(state, market, command, arrival, fills)
    makers = [(order.size_units, order.remaining_units) for order, _ in fills]
    dust_orders = _released(state, match.dust_orders) if match.dust_orders else ()
    reason = _close_reason(command, arrival, match)
    trade_ids = tuple([trade.trade_id for trade in trades])
    if reason is None:
        arrival.remaining_units = match.left_units
        arrival.trade_ids = newest_trade_ids(trade_ids)
        state.rest(arrival, arrival.reserved_units())
    is_buy = arrival.side is _BUY
    state.remember(
        command.order_id,
        Placement(
            command.order_id,
            arrival.condition_id,
            arrival.owner,
            arrival.order_type,
            arrival.leaves_at_s,
            _LIVE if reason is None else _MATCHED_AT_ONCE,
            cost_units if is_buy else matched_units,
            matched_units if is_buy else cost_units,
            trade_ids,
        ),
    )
    return Placed(
        matched_units if command.terms.size_units is None else arrival.size_units,
        matched_units,
        cost_units,
        reason,
        _changed(state, market, arrival, match, is_resting=reason is None),
        trades,
        makers,
        own_orders,
        dust_orders,
    )


def _released(state: State, orders: Sequence[LiveOrder]) -> list[ClosedOrder]:
    """Release what these orders reserved: the match took them out of the book."""
    for order in orders:
        state.release(order)
    return [closed_order(order) for order in orders]


def _meet(command: PlaceOrder, arrival: LiveOrder) -> Match[LiveOrder]:
    """Take what the order meets out of the book, or refuse the order and change nothing."""
    level = arrival.level
    side = level.side
    met = side.opposite
    if not command.order_type.may_rest:
        match = _plan(command, arrival)
        carry_out(met, match)
        return match
    if command.is_post_only and arrival.size_units >= met.level(met.best_rank).lot_units:
        raise PostOnlyWouldCross
    return met.take(side.ticks_per_one - level.rank, arrival.wallet, arrival.size_units)


def _changed(
    state: State,
    market: Market,
    arrival: LiveOrder,
    match: Match[LiveOrder],
    *,
    is_resting: bool,
) -> ChangedLevels | None:
    """Return the levels that a match changed, None if there are none or nobody wants to know."""
    fills, own_orders = match.fills, match.own_orders
    if not (fills or own_orders or is_resting):
        return None
    market.changed_at_ms = arrival.placed_at_ms
    if not state.tracks_book_changes:
        return None
    if fills and not own_orders and not is_resting:
        level = fills[0][0].level
        if level is fills[-1][0].level:
            return changed_level(arrival.condition_id, market.book, level)
    levels: list[Level[LiveOrder]] = [order.level for order in own_orders]
    levels += [order.level for order, _ in fills]
    if is_resting:
        levels.append(arrival.level)
    return changed_levels(arrival.condition_id, market.book, dict.fromkeys(levels))


def _close_reason(
    command: PlaceOrder, arrival: LiveOrder, match: Match[LiveOrder]
) -> CloseReason | None:
    """Return the reason that the order is closed, or None when its remainder rests."""
    if not command.order_type.may_rest:
        return _FILLED if match.is_exhausted else _KILLED
    if match.left_units == 0:
        return _FILLED
    if match.is_exhausted or match.left_units < arrival.level.lot_units:
        return _DUST
    return None

"""Placement of an order: checked in full first, then matched, then rested or closed."""

from collections.abc import Sequence
from typing import Final

from foretell.domain.errors.exchange import (
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    MarketClosed,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    PostOnlyWouldCross,
    UnknownMarket,
)
from foretell.domain.errors.order import InvalidOrderNonce
from foretell.domain.exchange.book import LiveOrder
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    OrderFilled,
    OrderPlaced,
    TradeMatched,
)
from foretell.domain.exchange.matching import MatchPlan, Taker, fill_of, is_dust, plan_match
from foretell.domain.exchange.order import (
    OrderStatus,
    OrderType,
    Side,
    check_expiration,
    leaves_book_at_s,
)
from foretell.domain.exchange.state import Market, Placement, State, UnsettledTrade, trade_moves
from foretell.domain.exchange.trade import (
    Trade,
    TradeStatus,
    last_trade_of,
    split_into_trades,
    taker_fill_units,
    total_cost_units,
    trade_id_of,
)

_BUY: Final = Side.BUY
_LIVE: Final = OrderStatus.LIVE
_MATCHED_ORDER: Final = OrderStatus.MATCHED
_MATCHED: Final = TradeStatus.MATCHED
_FILLED: Final = CloseReason.FILLED
_FILL_OR_KILL: Final = OrderType.FOK
_NO_MATCH: Final = MatchPlan([], 0, is_exhausted=False, own_orders=[], dust_orders=[])
"""The plan of an order that crosses no resting order."""


def place_order(state: State, command: PlaceOrder) -> tuple[Placement, list[Effect]]:
    """Return the placement of the order and its effects, or refuse it and change nothing.

    A repeated order is not placed again: its first placement is returned, with no effects.
    """
    if command.order_id in state.placement_by_order:
        return _first_placement(state, command), []
    market = _open_market(state, command)
    if command.order.expiration_s:
        check_expiration(command.order, max(state.latest_ms, command.at_ms) // 1000)
    arrival = _arrival(market, command)
    return _execute(state, market, command, arrival, _plan(state, market, command, arrival))


def plan_order(state: State, command: PlaceOrder) -> MatchPlan | None:
    """Return the plan of the order if it were placed now, or refuse it; nothing changes.

    The expiration is not checked. A repeated order has no plan, so None is returned.
    """
    if command.order_id in state.placement_by_order:
        _first_placement(state, command)
        return None
    market = _open_market(state, command)
    return _plan(state, market, command, _arrival(market, command))


def _first_placement(state: State, command: PlaceOrder) -> Placement:
    """Return the placement of a repeated order, or refuse another type or owner for it."""
    first = state.placement_by_order[command.order_id]
    if (first.owner, first.order_type) != (command.owner, command.order_type):
        raise OrderDuplicated(command.order_id)
    return first


def _open_market(state: State, command: PlaceOrder) -> Market:
    market = state.market_by_id.get(command.condition_id)
    if market is None:
        raise UnknownMarket(command.condition_id)
    if not market.is_open:
        raise MarketClosed(command.condition_id, "resolved")
    return market


def _arrival(market: Market, command: PlaceOrder) -> LiveOrder:
    """Return the order as it would rest with its whole size; it is in no book yet."""
    order, is_yes, ticks_per_one = command.order, command.is_yes, market.book.ticks_per_one
    price_ticks, side, size_units = _price_ticks(market, command), order.side, order.size_units
    expiration_s = order.expiration_s
    # Every order on the fast path builds this struct. Arguments by position cost a fraction of
    # those by name, and `is_bid` and `price_in_yes` are written out to save two calls. Equal
    # strings of a command are distinct objects: where the signer equals the maker, the maker's
    # object stands for both, so that the ledger can replace both by the account's.
    return LiveOrder(
        command.order_id,
        market.opened.condition_id,
        order.maker,
        order.maker if order.signer == order.maker else order.signer,
        command.owner,
        side,
        is_yes,
        (side is _BUY) == is_yes,
        price_ticks,
        price_ticks if is_yes else ticks_per_one - price_ticks,
        size_units,
        size_units,
        command.order_type,
        leaves_book_at_s(order) if expiration_s else None,
        command.at_ms,
        order.nonce,
    )


def _price_ticks(market: Market, command: PlaceOrder) -> int:
    """Return the limit in ticks of the book, which may be finer than those of the terms."""
    terms, ticks_per_one = command.terms, market.book.ticks_per_one
    if terms.ticks_per_one == ticks_per_one:
        return terms.price_ticks
    factor, rest = divmod(ticks_per_one, terms.ticks_per_one)
    assert rest == 0, "a tick only becomes finer"
    return terms.price_ticks * factor


def _plan(state: State, market: Market, command: PlaceOrder, arrival: LiveOrder) -> MatchPlan:
    """Return the plan of the order against the present book, or refuse the order."""
    _check_standing(state, market, arrival)
    budget_units = command.terms.budget_units
    need_units = market.reserved_units(arrival) if budget_units is None else budget_units
    asset = market.asset_given(arrival.side, is_yes=arrival.is_yes)
    state.ledger.check_funds(arrival.maker, market.opened.exchange, asset, need_units)
    limit_ticks, taker_is_bid = arrival.yes_price_ticks, arrival.is_bid
    plan = _NO_MATCH
    if market.book.is_met(limit_ticks, taker_is_bid=taker_is_bid):
        plan = plan_match(market.book, _taker(command, arrival))
        if command.is_post_only and plan.crosses:
            raise PostOnlyWouldCross
    if not command.order_type.may_rest:
        _check_taking(command, plan)
    return plan


def _check_standing(state: State, market: Market, arrival: LiveOrder) -> None:
    """Refuse an order that was placed long ago, or that its maker canceled on the chain."""
    if market.was_placed(arrival.order_id):
        raise OrderPlacedBefore(arrival.order_id)
    exchange = market.opened.exchange
    if state.canceled_orders and (exchange, arrival.order_id) in state.canceled_orders:
        raise OrderCanceledOnChain(arrival.order_id)
    if state.maker_nonces:
        nonce = state.maker_nonces.get((exchange, arrival.maker), 0)
        if arrival.nonce < nonce:
            raise InvalidOrderNonce(arrival.nonce, nonce)


def _taker(command: PlaceOrder, arrival: LiveOrder) -> Taker:
    return Taker(
        arrival.maker,
        arrival.side,
        arrival.is_yes,
        arrival.is_bid,
        arrival.yes_price_ticks,
        command.terms.size_units,
        command.terms.budget_units,
    )


def _check_taking(command: PlaceOrder, plan: MatchPlan) -> None:
    """Refuse an order that only takes and finds too little: FOK the whole, FAK any part."""
    if command.order_type is _FILL_OR_KILL:
        if not (plan.fills and plan.is_exhausted):
            raise FillOrKillUnfilled
    elif not plan.fills:
        raise FillAndKillUnmatched


def _execute(
    state: State, market: Market, command: PlaceOrder, arrival: LiveOrder, plan: MatchPlan
) -> tuple[Placement, list[Effect]]:
    met: list[Effect] = []
    # `_plan` returns `_NO_MATCH` itself when the book is not crossed, which is the usual case: an
    # identity check then skips the whole of matching. An equal plan from `plan_match` would only
    # be slower, not wrong.
    trades = _match(state, market, command, arrival, plan, met) if plan is not _NO_MATCH else ()
    reason = _close_reason(market, command, arrival, plan)
    size_units = plan.size_units if command.terms.size_units is None else arrival.size_units
    placement = _placement(arrival, plan, trades, reason)
    if reason is None:
        arrival.remaining_units = size_units - plan.size_units
        arrival.trade_ids = placement.trade_ids
        state.rest(arrival)
    state.remember(placement)
    placed = OrderPlaced(command, size_units, plan.size_units, placement.status, reason)
    return placement, [placed, *met, *state.book_changes(command.at_ms)]


def _match(
    state: State,
    market: Market,
    command: PlaceOrder,
    arrival: LiveOrder,
    plan: MatchPlan,
    effects: list[Effect],
) -> list[Trade]:
    """Execute the fills of the plan and return the order's trades; the effects are appended."""
    at_ms = command.at_ms
    effects += [state.close(own, CloseReason.SELF_TRADE, at_ms) for own in plan.own_orders]
    trades = _trades(market, command, plan)
    for trade in trades:
        assert _is_within_limit(trade, arrival), "a trade is never worse than the limit"
        effects.append(TradeMatched(trade))
        effects += _settle_later(state, market, trade, command)
    effects += [state.close(dusty, CloseReason.DUST, at_ms) for dusty in plan.dust_orders]
    return trades


def _is_within_limit(trade: Trade, arrival: LiveOrder) -> bool:
    """Return whether the taker pays at most its limit, or receives at least its limit."""
    paid = trade.cost_units * trade.ticks_per_one
    limit = trade.size_units * arrival.price_ticks
    return paid <= limit if trade.side is _BUY else paid >= limit


def _trades(market: Market, command: PlaceOrder, plan: MatchPlan) -> list[Trade]:
    """Return the fills of the plan in trades that one transaction each can settle."""
    has_budget, ticks_per_one = command.terms.has_budget, market.book.ticks_per_one
    fills = [fill_of(planned, command.order.side, ticks_per_one) for planned in plan.fills]
    trades, units_left = [], plan.size_units
    for index, group in enumerate(split_into_trades(fills)):
        size, cost = sum([fill.size_units for fill in group]), total_cost_units(group)
        units_left -= size
        trades.append(
            Trade(
                trade_id=trade_id_of(command.order_id, index),
                condition_id=command.condition_id,
                taker_order_id=command.order_id,
                taker=command.order.maker,
                taker_owner=command.owner,
                side=command.order.side,
                is_yes=command.is_yes,
                size_units=size,
                cost_units=cost,
                taker_fill_units=taker_fill_units(command.order, size, cost, has_budget=has_budget),
                matched_at_ms=command.at_ms,
                fills=group,
                ticks_per_one=ticks_per_one,
                bucket_index=index,
            )
        )
    assert units_left == 0, "trades conserve the fills"
    return trades


def _settle_later(state: State, market: Market, trade: Trade, command: PlaceOrder) -> list[Effect]:
    """Fill the makers' orders, and pend what the trade will move on the chain."""
    effects: list[Effect] = []
    signer_by_order = {trade.taker_order_id: command.order.signer}
    for fill in trade.fills:
        order = state.live_orders[fill.maker_order_id]
        order.trade_ids = (*order.trade_ids, trade.trade_id)
        signer_by_order[order.order_id] = order.signer
        status = state.fill(order, fill.size_units)
        effects.append(
            OrderFilled(
                order_id=order.order_id,
                condition_id=trade.condition_id,
                owner=order.owner,
                size_units=order.size_units,
                remaining_units=order.remaining_units,
                status=status,
                at_ms=trade.matched_at_ms,
                trade_id=trade.trade_id,
            )
        )
    last = last_trade_of(trade)
    market.last_price_ticks, market.last_side = last.price_ticks, last.side
    moves = trade_moves(market, trade)
    state.ledger.pend(moves)
    has_budget = command.terms.has_budget
    state.unsettled_trades[trade.trade_id] = UnsettledTrade(
        trade, command.order, has_budget, _MATCHED, "", moves, signer_by_order
    )
    return effects


def _close_reason(
    market: Market, command: PlaceOrder, arrival: LiveOrder, plan: MatchPlan
) -> CloseReason | None:
    """Return the reason that the order is closed, or None when its remainder rests."""
    if not command.order_type.may_rest:
        return _FILLED if plan.is_exhausted else CloseReason.KILLED
    left = arrival.size_units - plan.size_units
    assert left >= 0, "filled <= size"
    if left == 0:
        return _FILLED
    if plan.is_exhausted or is_dust(left, arrival.price_ticks, market.book.ticks_per_one):
        return CloseReason.DUST
    return None


def _placement(
    arrival: LiveOrder, plan: MatchPlan, trades: Sequence[Trade], reason: CloseReason | None
) -> Placement:
    making_units = taking_units = 0
    if trades:
        cost = sum([trade.cost_units for trade in trades])
        is_buy = arrival.side is _BUY
        making_units = cost if is_buy else plan.size_units
        taking_units = plan.size_units if is_buy else cost
    return Placement(
        order_id=arrival.order_id,
        condition_id=arrival.condition_id,
        owner=arrival.owner,
        order_type=arrival.order_type,
        leaves_at_s=arrival.leaves_at_s,
        status=_LIVE if reason is None else _MATCHED_ORDER,
        making_units=making_units,
        taking_units=taking_units,
        trade_ids=tuple([trade.trade_id for trade in trades]) if trades else (),
    )

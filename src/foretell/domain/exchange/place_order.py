"""Placing an order: judged in full first, then matched, then rested or closed."""

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
from foretell.domain.exchange.book import LiveOrder, is_bid, price_in_yes
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    OrderFilled,
    OrderPlaced,
    TradeMatched,
)
from foretell.domain.exchange.matching import Fill, MatchPlan, Taker, fill_of, is_dust, plan_match
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
_RESTING: Final = (OrderType.GTC, OrderType.GTD)
_NOBODY: Final = MatchPlan([], 0, is_exhausted=False, own_orders=[], dust_orders=[])
"""The plan of an order that no order in the book crosses."""


def place_order(state: State, command: PlaceOrder) -> tuple[Placement, list[Effect]]:
    """Return what became of the order, or refuse it and leave everything as it was.

    An order told again is not placed again: the first answer is given, with no effects.
    """
    known = state.placement_by_order.get(command.order_id)
    if known is not None:
        if (known.owner, known.order_type) != (command.owner, command.order_type):
            raise OrderDuplicated(command.order_id)
        return known, []
    market = _open_market(state, command)
    if command.order.expiration_s:
        check_expiration(command.order, max(state.latest_ms, command.at_ms) // 1000)
    arrival = _arrival(market, command)
    return _carry_out(state, market, command, arrival, _judge(state, market, command, arrival))


def judge_order(state: State, command: PlaceOrder) -> MatchPlan:
    """Return whom the order would meet if it were placed now, or refuse; nothing changes."""
    market = _open_market(state, command)
    return _judge(state, market, command, _arrival(market, command))


def _open_market(state: State, command: PlaceOrder) -> Market:
    market = state.market_by_id.get(command.condition_id)
    if market is None:
        raise UnknownMarket(command.condition_id)
    if not market.is_open:
        raise MarketClosed(command.condition_id, "resolved")
    return market


def _arrival(market: Market, command: PlaceOrder) -> LiveOrder:
    """Return the order as it would rest, whole; it is in no book yet.

    What rests for long shares its words with others: each command has its own.
    """
    order, is_yes, ticks_per_one = command.order, command.is_yes, market.book.ticks_per_one
    price_ticks, side, size_units = _price_ticks(market, command), order.side, order.size_units
    expiration_s = order.expiration_s
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
    """Return the limit in the ticks of the book, which may have become finer since it was read."""
    terms, ticks_per_one = command.terms, market.book.ticks_per_one
    if terms.ticks_per_one == ticks_per_one:
        return terms.price_ticks
    factor, rest = divmod(ticks_per_one, terms.ticks_per_one)
    assert rest == 0, "a tick only ever becomes finer"
    return terms.price_ticks * factor


def _judge(state: State, market: Market, command: PlaceOrder, arrival: LiveOrder) -> MatchPlan:
    _check_standing(state, market, arrival)
    budget_units = command.terms.budget_units
    need_units = market.reserved_units(arrival) if budget_units is None else budget_units
    asset = market.asset_given(arrival.side, is_yes=arrival.is_yes)
    state.ledger.check_funds(arrival.maker, market.opened.exchange, asset, need_units)
    limit_ticks, taker_is_bid = arrival.yes_price_ticks, arrival.is_bid
    plan = _NOBODY
    if market.book.is_met(limit_ticks, taker_is_bid=taker_is_bid):
        plan = plan_match(market.book, _taker(command, arrival))
        if command.is_post_only and plan.crosses:
            raise PostOnlyWouldCross
    if command.order_type not in _RESTING:
        _check_taking(command, plan)
    return plan


def _check_standing(state: State, market: Market, arrival: LiveOrder) -> None:
    """Refuse what was placed and is forgotten, or what its maker has ended on the chain."""
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
    if command.order_type is OrderType.FOK and not (plan.fills and plan.is_exhausted):
        raise FillOrKillUnfilled
    if command.order_type is OrderType.FAK and not plan.fills:
        raise FillAndKillUnmatched


def _carry_out(
    state: State, market: Market, command: PlaceOrder, arrival: LiveOrder, plan: MatchPlan
) -> tuple[Placement, list[Effect]]:
    met: list[Effect] = []
    trades = _meet(state, market, command, plan, met) if plan is not _NOBODY else ()
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


def _meet(
    state: State, market: Market, command: PlaceOrder, plan: MatchPlan, effects: list[Effect]
) -> list[Trade]:
    """Take what the order meets out of the book, and return its trades; the effects are added."""
    at_ms, ticks_per_one = command.at_ms, market.book.ticks_per_one
    effects += [state.close(own, CloseReason.SELF_TRADE, at_ms) for own in plan.own_orders]
    fills = [fill_of(planned, command.order.side, ticks_per_one) for planned in plan.fills]
    trades = _trades(market, command, fills)
    for trade in trades:
        effects.append(TradeMatched(trade))
        effects += _settle_later(state, market, trade, command)
    effects += [state.close(dusty, CloseReason.DUST, at_ms) for dusty in plan.dust_orders]
    return trades


def _trades(market: Market, command: PlaceOrder, fills: list[Fill]) -> list[Trade]:
    has_budget = command.terms.budget_units is not None
    trades = []
    for index, group in enumerate(split_into_trades(fills)):
        size, cost = sum(fill.size_units for fill in group), total_cost_units(group)
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
                ticks_per_one=market.book.ticks_per_one,
                bucket_index=index,
            )
        )
    return trades


def _settle_later(state: State, market: Market, trade: Trade, command: PlaceOrder) -> list[Effect]:
    """Fill the makers, and let the ledger count what the chain will move."""
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
    last = trade.fills[-1]
    market.last_price_ticks = price_in_yes(
        last.price_ticks, market.book.ticks_per_one, is_yes=last.is_yes
    )
    market.last_side = _BUY if is_bid(trade.side, is_yes=trade.is_yes) else Side.SELL
    moves = trade_moves(market, trade)
    state.ledger.pend(moves)
    has_budget = command.terms.budget_units is not None
    state.unsettled_trades[trade.trade_id] = UnsettledTrade(
        trade, command.order, has_budget, _MATCHED, "", moves, signer_by_order
    )
    return effects


def _close_reason(
    market: Market, command: PlaceOrder, arrival: LiveOrder, plan: MatchPlan
) -> CloseReason | None:
    """Return why nothing of the order rests, or None when the rest of it does."""
    if command.order_type not in _RESTING:
        return _FILLED if plan.is_exhausted else CloseReason.KILLED
    left = arrival.size_units - plan.size_units
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

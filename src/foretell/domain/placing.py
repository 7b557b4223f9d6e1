"""Placing an order: judged in full first, then matched, then rested or closed."""

from typing import Final

from foretell.domain import matching_errors
from foretell.domain.amounts import reserve_units
from foretell.domain.book import LiveOrder, is_bid, yes_price
from foretell.domain.commands import PlaceOrder
from foretell.domain.effects import CloseReason, Effect, OrderFilled, OrderPlaced, TradeMatched
from foretell.domain.matching import (
    Fill,
    MatchPlan,
    Taker,
    fill_of,
    is_dust,
    plan_match,
)
from foretell.domain.order import (
    OrderStatus,
    OrderType,
    Side,
    check_expiration,
    leaves_book_at_s,
)
from foretell.domain.state import Market, Placement, State, UnsettledTrade, trade_moves
from foretell.domain.trade import (
    Trade,
    TradeStatus,
    split_into_trades,
    taker_fill_units,
    total_cost_units,
    trade_id_of,
)
from foretell.domain.trading_errors import InvalidOrderNonce

_BUY: Final = Side.BUY
_LIVE: Final = OrderStatus.LIVE
_MATCHED: Final = TradeStatus.MATCHED
_FILLED: Final = CloseReason.FILLED
_RESTING: Final = (OrderType.GTC, OrderType.GTD)


def place_order(state: State, command: PlaceOrder) -> tuple[Placement, list[Effect]]:
    """Return what became of the order, or refuse it and leave everything as it was.

    An order told again is not placed again: the first answer is given, with no effects.
    """
    known = state.placement_by_order.get(command.order_id)
    if known is not None:
        if (known.owner, known.order_type) != (command.owner, command.order_type):
            raise matching_errors.OrderDuplicated(command.order_id)
        return known, []
    market = _open_market(state, command)
    if command.order.expiration_s:
        check_expiration(command.order, max(state.latest_ms, command.at_ms) // 1000)
    price = _price_ticks(market, command)
    plan = _judge(state, market, command, price)
    return _carry_out(state, market, command, price, plan)


def judge_order(state: State, command: PlaceOrder) -> MatchPlan:
    """Return whom the order would meet if it were placed now, or refuse; nothing changes."""
    market = _open_market(state, command)
    return _judge(state, market, command, _price_ticks(market, command))


def _judge(state: State, market: Market, command: PlaceOrder, price_ticks: int) -> MatchPlan:
    _check_unspent(state, market, command)
    _check_standing(state, market, command)
    _check_funds(state, market, command, price_ticks)
    plan = plan_match(market.book, _taker(market, command, price_ticks))
    _check_plan(command, plan)
    return plan


def _open_market(state: State, command: PlaceOrder) -> Market:
    market = state.market_by_id.get(command.condition_id)
    if market is None:
        raise matching_errors.UnknownMarket(command.condition_id)
    if not market.is_open:
        raise matching_errors.MarketClosed(command.condition_id, "resolved")
    return market


def _check_unspent(state: State, market: Market, command: PlaceOrder) -> None:
    if market.spent_orders and state.is_spent(command.order_id, command.condition_id):
        raise matching_errors.OrderPlacedBefore(command.order_id)


def _price_ticks(market: Market, command: PlaceOrder) -> int:
    """Return the limit in the ticks of the book, which may have become finer since it was read."""
    terms, ticks_per_one = command.terms, market.book.ticks_per_one
    if terms.ticks_per_one == ticks_per_one:
        return terms.price_ticks
    factor, rest = divmod(ticks_per_one, terms.ticks_per_one)
    assert rest == 0, "a tick only ever becomes finer"
    return terms.price_ticks * factor


def _check_standing(state: State, market: Market, command: PlaceOrder) -> None:
    """Refuse what its maker has ended on the chain, alone or with all of an earlier nonce."""
    exchange, order = market.opened.exchange, command.order
    if state.canceled_orders and (exchange, command.order_id) in state.canceled_orders:
        raise matching_errors.OrderCanceledOnChain(command.order_id)
    if state.maker_nonces:
        nonce = state.maker_nonces.get((exchange, order.maker), 0)
        if order.nonce < nonce:
            raise InvalidOrderNonce(order.nonce, nonce)


def _check_funds(state: State, market: Market, command: PlaceOrder, price_ticks: int) -> None:
    terms, order = command.terms, command.order
    if terms.budget_units is not None:
        need = terms.budget_units
    elif order.side is _BUY:
        need = reserve_units(order.taker_amount, price_ticks, market.book.ticks_per_one)
    else:
        need = order.maker_amount
    asset = market.asset_given(order.side, is_yes=command.is_yes)
    state.ledger.check_funds(order.maker, market.opened.exchange, asset, need)


def _taker(market: Market, command: PlaceOrder, price_ticks: int) -> Taker:
    order, is_yes, terms = command.order, command.is_yes, command.terms
    return Taker(
        order.maker,
        order.side,
        is_yes,
        is_bid(order.side, is_yes=is_yes),
        yes_price(price_ticks, market.book.ticks_per_one, is_yes=is_yes),
        terms.size_units,
        terms.budget_units,
    )


def _check_plan(command: PlaceOrder, plan: MatchPlan) -> None:
    if command.is_post_only and plan.crosses:
        raise matching_errors.PostOnlyWouldCross
    if command.order_type in _RESTING:
        return
    if command.order_type is OrderType.FOK and not (plan.fills and plan.is_exhausted):
        raise matching_errors.FillOrKillUnfilled
    if command.order_type is OrderType.FAK and not plan.fills:
        raise matching_errors.FillAndKillUnmatched


def _carry_out(
    state: State, market: Market, command: PlaceOrder, price_ticks: int, plan: MatchPlan
) -> tuple[Placement, list[Effect]]:
    effects: list[Effect] = []
    trades: list[Trade] = []
    if plan.crosses:
        trades = _meet(state, market, command, plan, effects)
    reason = _close_reason(market, command, price_ticks, plan)
    size_units = plan.size_units if command.terms.size_units is None else command.terms.size_units
    placement = _placement(command, plan, trades, reason)
    if reason is None:
        remaining_units = size_units - plan.size_units
        state.rest(_live_order(market, command, price_ticks, remaining_units, placement.trade_ids))
    state.remember(placement)
    placed = OrderPlaced(command, size_units, plan.size_units, placement.status, reason)
    return placement, [placed, *effects, *state.book_changes(command.at_ms)]


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
    spends = command.terms.budget_units is not None
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
                taker_fill_units=taker_fill_units(command.order, size, cost, spends=spends),
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
    market.last_price_ticks = yes_price(
        last.price_ticks, market.book.ticks_per_one, is_yes=last.is_yes
    )
    market.last_side = _BUY if is_bid(trade.side, is_yes=trade.is_yes) else Side.SELL
    moves = trade_moves(market, trade)
    for wallet, asset, units in moves:
        state.ledger.pend(wallet, asset, units)
    spends = command.terms.budget_units is not None
    state.unsettled_trades[trade.trade_id] = UnsettledTrade(
        trade, command.order, spends, _MATCHED, "", moves, signer_by_order
    )
    return effects


def _close_reason(
    market: Market, command: PlaceOrder, price_ticks: int, plan: MatchPlan
) -> CloseReason | None:
    """Return why nothing of the order rests, or None when the rest of it does."""
    size = command.terms.size_units
    if command.order_type not in _RESTING:
        return CloseReason.FILLED if plan.is_exhausted else CloseReason.KILLED
    assert size is not None
    left = size - plan.size_units
    if left == 0:
        return _FILLED
    if plan.is_exhausted or is_dust(left, price_ticks, market.book.ticks_per_one):
        return CloseReason.DUST
    return None


def _live_order(
    market: Market,
    command: PlaceOrder,
    price_ticks: int,
    remaining_units: int,
    trade_ids: tuple[str, ...],
) -> LiveOrder:
    order, is_yes = command.order, command.is_yes
    return LiveOrder(
        order_id=command.order_id,
        condition_id=command.condition_id,
        maker=order.maker,
        signer=order.signer,
        owner=command.owner,
        side=order.side,
        is_yes=is_yes,
        is_bid=is_bid(order.side, is_yes=is_yes),
        price_ticks=price_ticks,
        yes_price_ticks=yes_price(price_ticks, market.book.ticks_per_one, is_yes=is_yes),
        size_units=order.size_units,
        remaining_units=remaining_units,
        order_type=command.order_type,
        leaves_at_s=leaves_book_at_s(order),
        placed_at_ms=command.at_ms,
        nonce=order.nonce,
        trade_ids=trade_ids,
    )


def _placement(
    command: PlaceOrder, plan: MatchPlan, trades: list[Trade], reason: CloseReason | None
) -> Placement:
    making_units = taking_units = 0
    if trades:
        cost = sum([trade.cost_units for trade in trades])
        is_buy = command.order.side is _BUY
        making_units = cost if is_buy else plan.size_units
        taking_units = plan.size_units if is_buy else cost
    return Placement(
        order_id=command.order_id,
        condition_id=command.condition_id,
        owner=command.owner,
        order_type=command.order_type,
        leaves_at_s=leaves_book_at_s(command.order),
        status=_LIVE if reason is None else OrderStatus.MATCHED,
        making_units=making_units,
        taking_units=taking_units,
        trade_ids=tuple([trade.trade_id for trade in trades]),
    )

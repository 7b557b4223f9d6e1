"""A trade whose fills cannot all settle together, made into several that can be told apart.

What a trade moves is what its fills move, so its parts move together exactly what it did: the ledger
does not change. Each part settles, or fails, by itself from then on.
"""

import msgspec

from foretell.domain.exchange.commands import SplitTrade
from foretell.domain.exchange.effects import CloseReason, Effect, TradeSplit
from foretell.domain.exchange.state import State, UnsettledTrade, trade_moves
from foretell.domain.exchange.trade import PENDING, Trade, part_id_of, trade_with
from foretell.domain.exchange.trade_references import trade_ids_after_split, trade_order_ids


def split_trade(state: State, command: SplitTrade) -> list[Effect]:
    """Return the trades that were one, and the orders that left the book.

    A trade that is on the chain, or has failed, stays as it is.
    """
    unsettled = state.unsettled_trades.get(command.trade_id)
    if unsettled is None or unsettled.status not in PENDING:
        return []
    effects = _split(state, unsettled, command)
    for order_id in command.refused_ids:
        order = state.live_orders.get(order_id)
        if order is not None:
            effects.append(state.close(order, CloseReason.REVERTS_ON_CHAIN, command.at_ms))
    return [*effects, *state.book_changes(command.at_ms)]


def _split(state: State, unsettled: UnsettledTrade, command: SplitTrade) -> list[Effect]:
    """Return the split; what was split before, and what would leave no fill, is left alone."""
    whole = unsettled.trade
    leaving = {order_id for part in command.parts for order_id in part}
    kept = tuple(fill for fill in whole.fills if fill.maker_order_id not in leaving)
    groups = [
        tuple(fill for fill in whole.fills if fill.maker_order_id in part) for part in command.parts
    ]
    groups = [group for group in groups if group]
    if not groups or not kept:
        return []
    parts = []
    for fills in groups:
        part = trade_with(whole, fills, unsettled.order, has_budget=unsettled.has_budget)
        part = msgspec.structs.replace(
            part, trade_id=part_id_of(whole.trade_id, fills[0].maker_order_id)
        )
        parts.append(part)
    remaining = trade_with(whole, kept, unsettled.order, has_budget=unsettled.has_budget)
    for part in parts:
        _move_fills(state, whole.trade_id, part)
    for trade in (remaining, *parts):
        state.unsettled_trades[trade.trade_id] = _unsettled(state, unsettled, trade)
    return [TradeSplit(remaining, tuple(parts), unsettled.status, unsettled.tx_hash, command.at_ms)]


def _move_fills(state: State, whole_id: str, part: Trade) -> None:
    """Have the live orders of a part name it: its makers' instead of what it left."""
    for order_id in trade_order_ids(part):
        order = state.live_orders.get(order_id)
        if order is not None:
            order.trade_ids = trade_ids_after_split(order.trade_ids, order_id, part, whole_id)


def _unsettled(state: State, whole: UnsettledTrade, trade: Trade) -> UnsettledTrade:
    moves = trade_moves(state.market_by_id[trade.condition_id], trade)
    return msgspec.structs.replace(whole, trade=trade, moves=moves)

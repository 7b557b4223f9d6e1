"""Split of a trade whose fills cannot all settle together.

The moves of a trade are those of its fills, so its parts move the same in sum and the ledger does
not change. Each part then settles, or fails, by itself.
"""

import msgspec

from foretell.domain.exchange.commands import SplitTrade
from foretell.domain.exchange.effects import CloseReason, Effect, TradeSplit
from foretell.domain.exchange.state import State, UnsettledTrade
from foretell.domain.exchange.trade import PENDING, Trade, part_id_of, trade_with
from foretell.domain.exchange.trade_references import trade_ids_after_split, trade_order_ids


def split_trade(state: State, command: SplitTrade) -> list[Effect]:
    """Return the split trade and the orders that left the book.

    A trade that is on the chain, or has failed, is not split.
    """
    unsettled = state.unsettled_trades.get(command.trade_id)
    if unsettled is None or unsettled.status not in PENDING:
        return []
    effects = _split(state, unsettled, command)
    for order_ids, reason in (
        (command.refused_ids, CloseReason.REVERTS_ON_CHAIN),
        (command.short_ids, CloseReason.UNDERFUNDED),
    ):
        live = [state.live_orders.get(order_id) for order_id in order_ids]
        effects += [state.close(each, reason, command.at_ms) for each in live if each is not None]
    return [*effects, *state.book_changes(command.at_ms)]


def _split(state: State, unsettled: UnsettledTrade, command: SplitTrade) -> list[Effect]:
    """Return the split, or nothing if no fill would leave the trade or none would stay."""
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
    size_units = remaining.size_units + sum(part.size_units for part in parts)
    assert size_units == whole.size_units, "every fill is in one part"
    for part in parts:
        _move_fills(state, whole.trade_id, part)
    signer_by_order = unsettled.signer_by_order
    for trade in (remaining, *parts):
        state.unsettled_trades[trade.trade_id] = msgspec.structs.replace(
            unsettled, trade=trade, signers=signer_by_order
        )
    return [TradeSplit(remaining, tuple(parts), unsettled.status, unsettled.tx_hash, command.at_ms)]


def _move_fills(state: State, whole_id: str, part: Trade) -> None:
    """Add a part to the trades of its live orders; its makers no longer list the whole trade."""
    for order_id in trade_order_ids(part):
        order = state.live_orders.get(order_id)
        if order is not None:
            order.trade_ids = trade_ids_after_split(order.trade_ids, order_id, part, whole_id)

"""The part of a batch in the volumes of builders: what it matched with their orders, and what of that has failed."""

from collections.abc import Collection
from typing import Final

from foretell.domain.exchange.trade import TradeStatus
from foretell.store.database import Transaction
from foretell.store.trading.builder_days import NEXT, add_traded, has_builders, hold_builder_sums
from foretell.store.trading.builder_parts import SignedTrade, brought, load_builders_of
from foretell.store.trading.builder_recount import load_counted
from foretell.store.trading.trades import TradeChange, TradeRow, load_trades_by_id

_FAILED: Final = TradeStatus.FAILED


async def record_builder_volumes(
    tx: Transaction,
    matched: Collection[TradeRow],
    changes: Collection[TradeChange],
    *,
    has_splits: bool = False,
) -> None:
    """Add the trades that a batch matched to the volumes of builders, and take off those that failed.

    The tables have the orders and the trades of the batch, but not the changes of status yet. A trade that the batch
    both matched and split is added whole, and each part of it that failed is taken off. What a rebuild has counted
    already changes in its tables, too.
    """
    added = [row.trade for row in matched if row.status is not _FAILED]
    failing = [change.trade_id for change in changes if change.status is _FAILED]
    if not (added or failing or has_splits) or not await has_builders(tx):
        return
    if has_splits:
        # a rebuild reads trades before their fills, which a split moves
        await hold_builder_sums(tx)
    known = await load_trades_by_id(tx, failing)
    failed = [row.trade for row in known if row.status is not _FAILED]
    signed = [SignedTrade(trade, 1) for trade in added]
    signed += [SignedTrade(trade, -1) for trade in failed]
    builder_by_order = await load_builders_of(tx, signed)
    traded = brought(signed, builder_by_order)
    if not traded:
        return
    await add_traded(tx, traded)
    counted = await load_counted(tx, {each.trade.trade_id for each in signed})
    again = brought((each for each in signed if each.trade.trade_id in counted), builder_by_order)
    if again:
        await add_traded(tx, again, NEXT)

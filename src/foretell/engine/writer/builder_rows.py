"""The part of a batch in the volumes of builders: what it matched with their orders, and what of that has failed."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.portfolio.builder_volumes import NOTHING, TradedFills, UserDay, day_of
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.trading.builder_days import add_traded, has_builders, load_builders
from foretell.store.trading.trades import TradeChange, TradeRow, load_trades_by_id

_FAILED: Final = TradeStatus.FAILED


class _Part(NamedTuple):
    """An order's part in a trade."""

    order_id: Bytes32
    wallet: Address
    traded: TradedFills


async def record_builder_volumes(
    tx: Transaction, matched: Collection[TradeRow], changes: Collection[TradeChange]
) -> None:
    """Add the trades that a batch matched to the volumes of builders, and take off those that failed.

    The tables have the orders and the trades of the batch, but not the changes of status yet. A trade that the batch
    both matched and split is added whole, and each part of it that failed is taken off.
    """
    added = [row.trade for row in matched if row.status is not _FAILED]
    failing = [change.trade_id for change in changes if change.status is _FAILED]
    if not (added or failing) or not await has_builders(tx):
        return
    known = await load_trades_by_id(tx, failing)
    failed = [row.trade for row in known if row.status is not _FAILED]
    signed = [(trade, 1) for trade in added] + [(trade, -1) for trade in failed]
    order_ids = {part.order_id for trade, _ in signed for part in _parts(trade)}
    builder_by_order = await load_builders(tx, order_ids)
    traded: defaultdict[UserDay, TradedFills] = defaultdict(lambda: NOTHING)
    for trade, sign in signed:
        for part in _parts(trade):
            builder = builder_by_order.get(part.order_id)
            if builder is not None:
                key = UserDay(builder, part.wallet, day_of(trade.matched_at_ms))
                volume_units, fills = part.traded
                traded[key] = traded[key].plus(TradedFills(sign * volume_units, sign * fills))
    if traded:
        await add_traded(tx, traded)


def _parts(trade: Trade) -> Iterator[_Part]:
    """Yield what each order of a trade pays or receives in collateral."""
    yield _Part(trade.taker_order_id, trade.taker, TradedFills(trade.cost_units, len(trade.fills)))
    for fill in trade.fills:
        cost_units = fill.making_units if fill.side is Side.BUY else fill.taking_units
        yield _Part(fill.maker_order_id, fill.maker, TradedFills(cost_units, 1))

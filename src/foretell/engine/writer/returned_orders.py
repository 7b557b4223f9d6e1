"""The orders of failed trades that go back to their books: those that are not to blame.

Where nobody is to blame, no order goes back: the same ones could meet and fail again for ever.
"""

from collections.abc import Mapping, Sequence

from foretell.domain.exchange.commands import ObserveChain, ReturnedOrder
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.observation import TradeSettlement
from foretell.domain.exchange.order import OrderStatus, leaves_book_at_s
from foretell.domain.exchange.signing.stops import standing_of
from foretell.domain.exchange.trade import Trade
from foretell.domain.exchange.trade_references import trade_order_ids
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.writer.engine import Engine
from foretell.store.database import Transaction
from foretell.store.outbox.refused_orders import load_blamed
from foretell.store.trading.orders import OrderRow, load_orders
from foretell.store.trading.trades import load_sequence, load_trade_ids


class ReturnedOrders:
    """What one feed knows of the orders that it gave back.

    Their rows are read from the tables, which are behind the engine: a trade of them fails only after the
    tables have what the feed gave back before. Else an order that was canceled since could come back.
    Commands without effects are not published, and never in the tables.
    """

    def __init__(self) -> None:
        self._sequence: int | None = None

    def note(self, observation: ObserveChain, engine: Engine) -> None:
        """Take an observation that was submitted."""
        if any(trade.returned for trade in observation.trades):
            self._sequence = engine.published_sequence

    async def with_returned(
        self, tx: Transaction, engine: Engine, settlements: Sequence[TradeSettlement], name: str
    ) -> list[TradeSettlement]:
        """Return the settlements, those that were given up with the orders that are not to blame."""
        trades = {
            each.trade_id: engine.state.unsettled_trades[each.trade_id].trade
            for each in settlements
            if each.is_given_up and each.block_number is None
        }
        ids_by_trade = await _returning(tx, trades)
        if not ids_by_trade:
            return list(settlements)
        if self._sequence is None:
            self._sequence = engine.published_sequence
        if await load_sequence(tx, name) < self._sequence:
            return [each for each in settlements if each.trade_id not in ids_by_trade]
        order_ids = sorted({order_id for ids in ids_by_trade.values() for order_id in ids})
        row_by_id = await load_orders(tx, order_ids)
        trade_ids = await load_trade_ids(tx, order_ids)
        return [
            each._replace(
                returned=tuple(
                    returned_order(row_by_id[order_id], trade_ids)
                    for order_id in ids_by_trade.get(each.trade_id, ())
                    if order_id in row_by_id
                )
            )
            for each in settlements
        ]


async def _returning(tx: Transaction, trades: Mapping[str, Trade]) -> dict[str, list[Bytes32]]:
    """Return the orders of each failed trade that are not to blame, where another one is."""
    order_ids = {order_id for trade in trades.values() for order_id in trade_order_ids(trade)}
    blamed = await load_blamed(tx, order_ids) if order_ids else frozenset()
    found = {}
    for trade_id, trade in trades.items():
        innocent = [each for each in trade_order_ids(trade) if each not in blamed]
        if innocent and len(innocent) < len(trade_order_ids(trade)):
            found[trade_id] = innocent
    return found


def returned_order(row: OrderRow, trade_ids: Mapping[str, Sequence[str]]) -> ReturnedOrder:
    """Return an order as the engine takes it back."""
    is_filled = row.status is OrderStatus.MATCHED and row.close_reason == CloseReason.FILLED
    return ReturnedOrder(
        order_id=row.order_id,
        signer=row.signed.signer,
        owner=row.owner,
        order_type=row.order_type,
        price_ticks=row.price_ticks,
        ticks_per_one=row.ticks_per_one,
        size_units=row.size_units,
        leaves_at_s=leaves_book_at_s(row.signed),
        placed_at_ms=row.placed_at_ms,
        nonce=standing_of(row.signed),
        trade_ids=tuple(trade_ids.get(row.order_id, ())),
        is_filled=is_filled,
    )

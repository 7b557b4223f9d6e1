"""The rows of the tables that some commands change: each as it is after the last of them."""

from typing import NamedTuple

from foretell.domain.exchange.commands import OpenMarket, ReleaseOrder
from foretell.domain.exchange.effects import (
    AllocationMoved,
    BookChanged,
    CloseReason,
    Effect,
    MarketOpened,
    MarketResolved,
    MarketRestored,
    OrderClosed,
    OrderFilled,
    OrderPlaced,
    OrderRestored,
    OrderReturned,
    TickChanged,
    TradeAdvanced,
    TradeFailed,
    TradeMatched,
    TradeRestored,
    TradeSplit,
    TreasuryJoined,
)
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import Trade, TradeStatus, last_trade_of
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.writer.builder_rows import record_builder_volumes
from foretell.store.database import Transaction
from foretell.store.trading.failed_volumes import FailedTrade, add_failed, load_failing_trades
from foretell.store.trading.orders import (
    OrderChange,
    OrderRow,
    forget_delayed,
    record_changes,
    record_orders,
)
from foretell.store.trading.quote_points import (
    MINUTE_MS,
    QuoteKey,
    QuotePoint,
    record_quote_points,
)
from foretell.store.trading.trades import (
    Quote,
    TradeChange,
    TradeParts,
    TradeRow,
    matched_row,
    record_quotes,
    record_trade_changes,
    record_trade_parts,
    record_trades,
)


class _Placed(NamedTuple):
    sequence: int
    effect: OrderPlaced


class TableRows:
    """The orders, trades, fills and quotes that a batch of commands changes."""

    def __init__(
        self, market_by_id: dict[Bytes32, OpenMarket], quote_by_id: dict[Bytes32, Quote]
    ) -> None:
        self._market_by_id = market_by_id
        self._known_quotes = quote_by_id
        self._placed: dict[Bytes32, _Placed] = {}
        self._changed: dict[Bytes32, OrderChange] = {}
        self._traded: dict[str, TradeRow] = {}
        self._split: list[TradeParts] = []
        self._advanced: dict[str, TradeChange] = {}
        self._points: dict[QuoteKey, QuotePoint] = {}
        self._quotes: dict[Bytes32, _LatestQuote] = {}

    def quote_by_id(self) -> dict[Bytes32, Quote]:
        """Return the changed quotes, as they are now."""
        return {condition_id: latest.quote() for condition_id, latest in self._quotes.items()}

    async def record(self, tx: Transaction) -> None:
        """Write the rows."""
        await forget_delayed(tx, self._released())
        await record_orders(tx, self._new_orders())
        await record_changes(tx, list(self._changed.values()))
        await record_trades(tx, list(self._traded.values()))
        for split in self._split:
            await record_trade_parts(tx, split)
        failed = await self._failed(tx)
        await record_builder_volumes(
            tx, self._traded.values(), self._advanced.values(), has_splits=bool(self._split)
        )
        await record_trade_changes(tx, list(self._advanced.values()))
        for latest in self._quotes.values():
            self._keep_point(latest)
        await record_quote_points(tx, self._points)
        await add_failed(tx, failed)
        await record_quotes(tx, list(self.quote_by_id().values()))

    async def _failed(self, tx: Transaction) -> list[FailedTrade]:
        """Return the trades that failed in this batch, and count them in their quotes."""
        ids = [
            change.trade_id
            for change in self._advanced.values()
            if change.status is TradeStatus.FAILED
        ]
        failed = [
            FailedTrade(row.trade.condition_id, row.trade.matched_at_ms, row.trade.cost_units)
            for row in self._traded.values()
            if row.status is TradeStatus.FAILED
        ]
        failed += await load_failing_trades(tx, ids) if ids else []
        for each in failed:
            quote = self._quotes.get(each.condition_id)
            if quote is None:
                quote = _LatestQuote(self._known_quotes[each.condition_id])
                self._quotes[each.condition_id] = quote
            quote.add_failed(each.cost_units)
        return failed

    def apply(self, sequence: int, effect: Effect) -> None:
        """Change the rows that an effect concerns."""
        match effect:
            case OrderPlaced():
                self._placed[effect.command.order_id] = _Placed(sequence, effect)
            case OrderFilled() | OrderClosed() | OrderReturned():
                self._change(effect)
            case TradeMatched():
                self._trade(sequence, effect.trade)
            case TradeAdvanced():
                self._advance(effect)
            case TradeSplit():
                self._split.append(_parts(effect))
            case BookChanged() | MarketOpened() | TickChanged() | MarketResolved():
                self._quote(effect)
            case (
                TreasuryJoined()
                | AllocationMoved()
                | MarketRestored()
                | OrderRestored()
                | TradeRestored()
                | TradeFailed()
            ):
                pass

    def _released(self) -> list[Bytes32]:
        """Return the orders of this batch that were delayed before, and may have a row."""
        return [
            order_id
            for order_id, placed in self._placed.items()
            if isinstance(placed.effect.command, ReleaseOrder)
        ]

    def _new_orders(self) -> list[OrderRow]:
        """Return the orders placed in this batch as they are now, their changes included."""
        return [
            _order_row(placed, self._changed.pop(order_id, None))
            for order_id, placed in self._placed.items()
        ]

    def _change(self, effect: OrderFilled | OrderClosed | OrderReturned) -> None:
        if isinstance(effect, OrderReturned):
            order = effect.order
            self._changed[order.order_id] = OrderChange(
                order.order_id, order.matched_units, OrderStatus.LIVE, None, effect.at_ms
            )
            return
        closed = effect.reason if isinstance(effect, OrderClosed) else effect.close_reason
        self._changed[effect.order_id] = OrderChange(
            effect.order_id,
            effect.size_units - effect.remaining_units,
            effect.status,
            _word(closed),
            effect.at_ms,
        )

    def _trade(self, sequence: int, trade: Trade) -> None:
        market = self._market_by_id[trade.condition_id]
        self._traded[trade.trade_id] = matched_row(trade, sequence, market)
        last = last_trade_of(trade)
        latest = self._latest(trade.condition_id, trade.matched_at_ms)
        latest.last_price_ticks = last.price_ticks
        latest.last_side = last.side.name
        latest.add_traded(trade.cost_units)

    def _advance(self, effect: TradeAdvanced) -> None:
        """Keep the status of a trade; one that was split in this batch is advanced after that."""
        row = self._traded.get(effect.trade_id)
        is_split = any(split.kept.trade_id == effect.trade_id for split in self._split)
        if row is not None and not is_split:
            self._traded[effect.trade_id] = row._replace(
                status=effect.status, tx_hash=effect.tx_hash, updated_at_ms=effect.at_ms
            )
        else:
            self._advanced[effect.trade_id] = TradeChange(
                effect.trade_id, effect.status, effect.tx_hash, effect.at_ms
            )

    def _quote(self, effect: BookChanged | MarketOpened | TickChanged | MarketResolved) -> None:
        if isinstance(effect, MarketOpened):
            condition_id = effect.market.condition_id
            self._quotes[condition_id] = _LatestQuote(_first_quote(effect.market))
            return
        latest = self._latest(effect.condition_id, effect.at_ms)
        if isinstance(effect, MarketResolved):
            latest.best_bid_ticks = latest.best_ask_ticks = None
        elif isinstance(effect, TickChanged):
            latest.refine(effect)
        else:
            latest.best_bid_ticks = effect.best_bid_ticks
            latest.best_ask_ticks = effect.best_ask_ticks

    def _latest(self, condition_id: Bytes32, at_ms: int) -> "_LatestQuote":
        """Return the quote to change; if its minute is over, keep it first as that minute's last.

        A command may have waited while others with a later time were written. The time of a quote does not go
        back with it: a point of the minute before would then have trades of the minute after. Such a command has
        no trades, as the engine lets no order be placed earlier than what came before it.
        """
        latest = self._quotes.get(condition_id)
        is_first = latest is None
        if latest is None:
            latest = self._quotes[condition_id] = _LatestQuote(self._known_quotes[condition_id])
        at_ms = max(at_ms, latest.updated_at_ms)
        if not is_first and at_ms // MINUTE_MS != latest.updated_at_ms // MINUTE_MS:
            self._keep_point(latest)
        latest.is_pointed = True
        latest.updated_at_ms = at_ms
        return latest

    def _keep_point(self, latest: "_LatestQuote") -> None:
        """Keep a quote as the last of its minute, unless all it saw was the opening of its market."""
        if latest.is_pointed:
            key = QuoteKey(latest.condition_id, latest.updated_at_ms // MINUTE_MS)
            top = BookTop(
                latest.ticks_per_one,
                latest.best_bid_ticks,
                latest.best_ask_ticks,
                latest.last_price_ticks,
            )
            self._points[key] = QuotePoint(top, latest.volume_units)


class _LatestQuote:
    """A quote that a batch changes."""

    __slots__ = (*Quote._fields, "is_pointed")

    def __init__(self, quote: Quote) -> None:
        self.condition_id = quote.condition_id
        self.ticks_per_one = quote.ticks_per_one
        self.best_bid_ticks = quote.best_bid_ticks
        self.best_ask_ticks = quote.best_ask_ticks
        self.last_price_ticks = quote.last_price_ticks
        self.last_side = quote.last_side
        self.volume_units = quote.volume_units
        self.failed_units = quote.failed_units
        self.updated_at_ms = quote.updated_at_ms
        self.is_pointed = False

    def add_traded(self, units: int) -> None:
        """Count a trade; a column holds no more than 63 bits."""
        self.volume_units = min(self.volume_units + units, AMOUNT_UNITS_MAX)

    def add_failed(self, units: int) -> None:
        """Count a trade that failed in this batch."""
        self.failed_units = min(self.failed_units + units, AMOUNT_UNITS_MAX)

    def refine(self, changed: TickChanged) -> None:
        """State the same prices in finer ticks."""
        top = BookTop(
            self.ticks_per_one, self.best_bid_ticks, self.best_ask_ticks, self.last_price_ticks
        ).refined(changed.ticks_per_one)
        self.ticks_per_one, self.best_bid_ticks, self.best_ask_ticks, self.last_price_ticks = top

    def quote(self) -> Quote:
        """Return the quote as it is now."""
        return Quote._make(getattr(self, name) for name in Quote._fields)


def _order_row(placed: _Placed, change: OrderChange | None) -> OrderRow:
    effect = placed.effect
    command = effect.command
    if change is None:
        change = OrderChange(
            command.order_id,
            effect.matched_units,
            effect.status,
            _word(effect.close_reason),
            command.at_ms,
        )
    return OrderRow(
        order_id=command.order_id,
        sequence=placed.sequence,
        condition_id=command.condition_id,
        is_yes=command.is_yes,
        owner=command.owner,
        order_type=command.order_type,
        price_ticks=command.terms.price_ticks,
        ticks_per_one=command.terms.ticks_per_one,
        size_units=effect.size_units,
        matched_units=change.matched_units,
        status=change.status,
        close_reason=change.close_reason,
        placed_at_ms=command.at_ms,
        updated_at_ms=change.updated_at_ms,
        signed=command.order,
        builder=command.builder_code,
    )


def _parts(split: TradeSplit) -> TradeParts:
    return TradeParts(split.kept, split.parts, split.status, split.tx_hash, split.at_ms)


def _word(reason: CloseReason | None) -> str | None:
    return None if reason is None else reason.value


def _first_quote(market: OpenMarket) -> Quote:
    return Quote(
        condition_id=market.condition_id,
        ticks_per_one=market.rules.ticks_per_one,
        best_bid_ticks=None,
        best_ask_ticks=None,
        last_price_ticks=None,
        last_side=None,
        volume_units=0,
        updated_at_ms=market.at_ms,
    )

"""Effects that restore a state for a new subscriber, such as streams and public books."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.effects import (
    Effect,
    LevelChange,
    MarketRestored,
    OrderRestored,
    TradeRestored,
)
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S
from foretell.domain.exchange.state import Market, State
from foretell.domain.exchange.trade_references import newest_trade_ids
from foretell.domain.exchange.waiting.delays import DelayedOrder


class _Order(NamedTuple):
    """An order, and copies of its fields that may change."""

    order: LiveOrder
    price_ticks: int
    remaining_units: int
    trade_ids: tuple[str, ...]


class _OrderMarket(NamedTuple):
    """The market of an order, with its tick at the time of the request."""

    opened: OpenMarket
    ticks_per_one: int


def restored_effects(state: State) -> Iterator[Effect]:
    """Return all markets, then all resting and delayed orders, then all unsettled trades.

    The effects show the state at the time of the call, even if commands change it during the
    iteration: fields that may change are copied here, and each effect is built when it is read.
    """
    markets = [_market(market) for market in state.market_by_id.values()]
    market_by_id = {
        condition_id: _OrderMarket(market.opened, market.book.ticks_per_one)
        for condition_id, market in state.market_by_id.items()
    }
    orders = [
        _Order(order, order.price_ticks, order.remaining_units, newest_trade_ids(order.trade_ids))
        for order in state.live_orders.values()
    ]
    trades = [
        TradeRestored(each.trade, each.signer_by_order, each.status, each.tx_hash)
        for each in state.unsettled_trades.values()
    ]
    restored = (_order(market_by_id[each.order.condition_id], each) for each in orders)
    delayed = [
        _delayed(market_by_id[each.command.condition_id], each)
        for each in state.delays.orders.values()
    ]
    return chain(markets, restored, delayed, trades)


def _market(market: Market) -> MarketRestored:
    """Return a market as it is; the book of one that has resolved is empty, also while its orders are being closed."""
    book, is_open = market.book, market.is_open
    return MarketRestored(
        market=market.opened,
        rules=market.rules,
        is_open=is_open,
        levels=tuple(
            LevelChange(is_bid, level)
            for is_bid in (True, False)
            for level in (book.levels(is_bid=is_bid) if is_open else ())
        ),
        best_bid_ticks=book.best_bid() if is_open else None,
        best_ask_ticks=book.best_ask() if is_open else None,
        last_price_ticks=market.last_price_ticks,
        last_side=market.last_side,
        changed_at_ms=market.changed_at_ms,
    )


def _order(market: _OrderMarket, seen: _Order) -> OrderRestored:
    opened, order, leaves_at_s = market.opened, seen.order, seen.order.leaves_at_s
    return OrderRestored(
        order_id=order.order_id,
        condition_id=order.condition_id,
        token_id=opened.token(is_yes=order.is_yes),
        owner=order.owner,
        signer=order.signer,
        maker=order.maker,
        side=order.side,
        is_yes=order.is_yes,
        price_ticks=seen.price_ticks,
        ticks_per_one=market.ticks_per_one,
        size_units=order.size_units,
        matched_units=order.size_units - seen.remaining_units,
        order_type=order.order_type,
        expiration_s=0 if leaves_at_s is None else leaves_at_s + EXPIRATION_MARGIN_S,
        placed_at_ms=order.placed_at_ms,
        trade_ids=seen.trade_ids,
    )


def _delayed(market: _OrderMarket, order: DelayedOrder) -> OrderRestored:
    command, terms = order.command, order.command.terms
    return OrderRestored(
        order_id=command.order_id,
        condition_id=command.condition_id,
        token_id=market.opened.token(is_yes=command.is_yes),
        owner=command.owner,
        signer=command.order.signer,
        maker=command.order.maker,
        side=command.order.side,
        is_yes=command.is_yes,
        price_ticks=terms.price_ticks,
        ticks_per_one=terms.ticks_per_one,
        size_units=order.size_units,
        matched_units=0,
        order_type=command.order_type,
        expiration_s=command.order.expiration_s,
        placed_at_ms=command.at_ms,
        trade_ids=(),
    )

"""A state told to those who did not hear how it came so: what streams and books begin with."""

from collections.abc import Iterator

from foretell.domain.book import LiveOrder
from foretell.domain.effects import (
    Effect,
    LevelChange,
    MarketRestored,
    OrderRestored,
    TradeRestored,
)
from foretell.domain.order import EXPIRATION_MARGIN_S
from foretell.domain.state import Market, State


def restored_effects(state: State) -> Iterator[Effect]:
    """Yield every market, then every order that rests, then every trade that is not settled."""
    for market in state.market_by_id.values():
        yield _market(market)
    for order in state.live_orders.values():
        yield _order(state.market_by_id[order.condition_id], order)
    for unsettled in state.unsettled_trades.values():
        yield TradeRestored(
            unsettled.trade, unsettled.signer_by_order, unsettled.status, unsettled.tx_hash
        )


def _market(market: Market) -> MarketRestored:
    book = market.book
    return MarketRestored(
        market=market.opened,
        rules=market.rules,
        is_open=market.is_open,
        levels=tuple(
            LevelChange(is_bid, level)
            for is_bid in (True, False)
            for level in book.levels(is_bid=is_bid)
        ),
        best_bid_ticks=book.best_bid(),
        best_ask_ticks=book.best_ask(),
        last_price_ticks=market.last_price_ticks,
        last_side=market.last_side,
        changed_at_ms=market.changed_at_ms,
    )


def _order(market: Market, order: LiveOrder) -> OrderRestored:
    leaves_at_s = order.leaves_at_s
    return OrderRestored(
        order_id=order.order_id,
        condition_id=order.condition_id,
        token_id=market.token(is_yes=order.is_yes),
        owner=order.owner,
        signer=order.signer,
        maker=order.maker,
        side=order.side,
        is_yes=order.is_yes,
        price_ticks=order.price_ticks,
        ticks_per_one=market.book.ticks_per_one,
        size_units=order.size_units,
        matched_units=order.size_units - order.remaining_units,
        order_type=order.order_type,
        expiration_s=0 if leaves_at_s is None else leaves_at_s + EXPIRATION_MARGIN_S,
        placed_at_ms=order.placed_at_ms,
        trade_ids=order.trade_ids,
    )

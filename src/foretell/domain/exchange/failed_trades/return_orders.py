"""Return of orders to the book, after a trade failed for which another order is to blame.

The trade never happened, so what it took of such an order is to trade again: an order that still rests
becomes larger where it stands, and one that was filled rests again before all that were placed later at
its price. Nothing is matched by this. An order that may not rest now stays as it is.
"""

from foretell.domain.exchange.arrivals.chain_cancels import was_canceled
from foretell.domain.exchange.book import is_bid
from foretell.domain.exchange.commands import ReturnedOrder
from foretell.domain.exchange.effects import OrderRestored, OrderReturned
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, Side
from foretell.domain.exchange.signing.stops import StopKind, is_stopped
from foretell.domain.exchange.state import Market, State
from foretell.domain.exchange.trade import Trade
from foretell.domain.exchange.trade_references import newest_trade_ids
from foretell.domain.values.hexadecimal import Address


def return_order(
    state: State, trade: Trade, returned: ReturnedOrder, at_ms: int
) -> OrderReturned | None:
    """Return the order that went back to its book, None if it may not."""
    market = state.market_by_id[trade.condition_id]
    side, is_yes, maker, units = _part(trade, returned)
    is_part = 0 < units <= returned.size_units
    if not market.is_open or not is_part or not _may_rest(state, market, maker, returned, at_ms):
        return None
    order = state.live_orders.get(returned.order_id)
    if order is not None:
        is_back = _enlarge(state, market, order, units)
    else:
        order = _order_again(state, market, returned, (side, is_yes, maker))
        order.remaining_units = units
        is_back = returned.is_filled and _rest_again(state, market, order)
    if not is_back:
        return None
    state.touch(order)
    return OrderReturned(_restored(market, order), trade.trade_id, at_ms)


def _part(trade: Trade, returned: ReturnedOrder) -> tuple[Side, bool, Address, int]:
    """Return the side, the outcome, the wallet and the units of an order in a trade."""
    if returned.order_id == trade.taker_order_id:
        return trade.side, trade.is_yes, trade.taker, trade.size_units
    for fill in trade.fills:
        if fill.maker_order_id == returned.order_id:
            return fill.side, fill.is_yes, fill.maker, fill.size_units
    return trade.side, trade.is_yes, trade.taker, 0


def _may_rest(
    state: State, market: Market, maker: Address, returned: ReturnedOrder, at_ms: int
) -> bool:
    """Return whether a new order of these terms could rest."""
    exchange, leaves_at_s = market.opened.exchange, returned.leaves_at_s
    return (
        returned.order_type.may_rest
        and (leaves_at_s is None or leaves_at_s > max(state.latest_ms, at_ms) // 1000)
        and maker not in state.barred_wallets
        and not was_canceled(state, exchange, returned.order_id)
        and returned.nonce >= state.maker_nonces.get((exchange, maker), 0)
        and not _is_stopped(state, exchange, maker, returned)
    )


def _is_stopped(state: State, exchange: Address, maker: Address, returned: ReturnedOrder) -> bool:
    signer, stops = returned.signer, state.maker_stops
    return any(
        is_stopped(
            returned.nonce, kind, stops.get((exchange, maker, kind), 0), signer=signer, maker=maker
        )
        for kind in StopKind
    )


def _enlarge(state: State, market: Market, order: LiveOrder, units: int) -> bool:
    """Add units to a resting order if its wallet covers them; it keeps its place."""
    account, before_units = order.account, order.reserved_units()
    order.remaining_units += units
    more_units = order.reserved_units() - before_units
    order.remaining_units -= units
    is_more = order.remaining_units + units > order.size_units
    if is_more or not _covers(state, market, order, more_units):
        return False
    order.level.side.enlarge(order, units)
    account.reserved_units += more_units
    return True


def _order_again(
    state: State, market: Market, returned: ReturnedOrder, who: tuple[Side, bool, Address]
) -> LiveOrder:
    """Return an order that was filled as it was placed, in no book."""
    side, is_yes, maker = who
    account = state.ledger.account(maker, market.asset_given(side, is_yes=is_yes))
    book_side = market.book.side(is_bid=is_bid(side, is_yes=is_yes))
    factor, rest = divmod(book_side.ticks_per_one, returned.ticks_per_one)
    assert rest == 0, "a tick only becomes finer"
    price_ticks = returned.price_ticks * factor
    rank = price_ticks if side is Side.BUY else book_side.ticks_per_one - price_ticks
    order = LiveOrder()
    order.wallet, order.account = account.wallet, account
    order.level = book_side.level(rank)
    order.order_id, order.condition_id = returned.order_id, market.opened.condition_id
    order.signer, order.owner, order.side = returned.signer, returned.owner, side
    order.size_units, order.order_type = returned.size_units, returned.order_type
    order.leaves_at_s, order.placed_at_ms = returned.leaves_at_s, returned.placed_at_ms
    order.nonce, order.trade_ids = returned.nonce, returned.trade_ids
    return order


def _rest_again(state: State, market: Market, order: LiveOrder) -> bool:
    """Have an order rest again, unless it is dust, would cross the book, or is not covered."""
    level = order.level
    is_crossing = level.rank + level.side.opposite.best_rank >= level.side.ticks_per_one
    need_units = order.reserved_units()
    is_dust = order.remaining_units < level.lot_units
    if is_dust or is_crossing or not _covers(state, market, order, need_units):
        return False
    state.rest(order, need_units, is_by_age=True)
    return True


def _covers(state: State, market: Market, order: LiveOrder, units: int) -> bool:
    asset = market.asset_given(order.side, is_yes=order.is_yes)
    return state.ledger.spendable_units(order.maker, market.opened.exchange, asset) >= units


def _restored(market: Market, order: LiveOrder) -> OrderRestored:
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
        trade_ids=newest_trade_ids(order.trade_ids),
    )

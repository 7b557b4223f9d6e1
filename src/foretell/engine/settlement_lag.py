"""The lag of settlement, and the orders that are refused until it has caught up.

An order whose answer says `matched` fails on the chain if settlement reaches it after an expiration, its own or
that of an order that it meets. So the margin, which is fixed in the book, grows with the lag where orders arrive,
and past a bound nothing is matched: what may not settle in time is refused before anybody is promised anything.
A trade that is `RETRYING`, since a try failed or the node refused it alone, is no sign of a lag, nor are the other trades
of its wallets, which settlement may keep behind it: else two wallets could keep everybody's orders out. While the node
refuses everything, trades stay `MATCHED`, which is a lag. A trade of a halted market is no sign either. Each exchange has
a lag of its own: while one is paused, orders of the other go on, where settlement has no trade wait for one that the
pause or a halt stops.
"""

from collections.abc import Mapping
from typing import Final

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.book import is_bid
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, Side
from foretell.domain.exchange.place_order import plan_order
from foretell.domain.exchange.state import Market, State, UnsettledTrade
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address
from foretell.engine.writer.engine import Engine

LAG_TOLERATED_S: Final = 20
"""A lag that the margin of every order covers."""
LAG_REFUSED_S: Final = 120
"""A lag past which no order is taken that would match, by default."""
LOOK_PAUSE_MS: Final = 1_000
"""Between two looks at the trades that wait: orders may arrive by the thousand."""

_MATCHED: Final = TradeStatus.MATCHED
_RETRYING: Final = TradeStatus.RETRYING


class SettlementLag:
    """How long the oldest trade of each exchange has waited to be in a block, without those beside a failing one."""

    def __init__(self, engine: Engine, lag_s_max: int = LAG_REFUSED_S) -> None:
        """Past `lag_s_max` nothing is matched; 0 is for any lag."""
        self._engine = engine
        self._lag_s_max = lag_s_max
        self._seconds_by_exchange: Mapping[Address, int] = {}
        self._looks_at_ms = 0

    def is_too_long_for(self, command: PlaceOrder) -> bool:
        """Return whether an order, or one that it meets, may expire before settlement reaches a trade of them.

        An order that was placed before has its answer already. Without a lag this is one comparison of
        times.
        """
        now_ms = self._engine.clock_ms()
        if now_ms >= self._looks_at_ms:
            self._looks_at_ms = now_ms + LOOK_PAUSE_MS
            self._seconds_by_exchange = lags_of(self._engine.state, now_ms)
        if not self._seconds_by_exchange:
            return False
        return self._is_late(self._engine.state, command, now_ms // 1000)

    def _is_late(self, state: State, command: PlaceOrder, now_s: int) -> bool:
        market = state.market_by_id.get(command.condition_id)
        if market is None or command.order_id in state.placed:
            return False
        lag_s = self._seconds_by_exchange.get(market.opened.exchange, 0)
        if lag_s == 0:
            return False
        expiration_s = command.order.expiration_s
        if expiration_s and expiration_s <= now_s + EXPIRATION_MARGIN_S + lag_s:
            return True
        if command.is_post_only or not _would_cross(market, command):
            return False
        is_past_bound = 0 < self._lag_s_max < lag_s
        return is_past_bound or _meets_expiring(state, command, now_s + lag_s)


def lags_of(state: State, now_ms: int) -> Mapping[Address, int]:
    """Return the lag of each exchange in seconds, without those that the margin covers.

    The trades are in the order of their matches, so the first that waits is the oldest. Trades of wallets
    that have a failing one may wait for that one alone.
    """
    unsettled = state.unsettled_trades.values()
    failing = {
        wallet for each in unsettled if each.status is _RETRYING for wallet in _wallets_of(each)
    }
    found: dict[Address, int] = {}
    halted, exchanges = state.halted_markets, len(state.exchanges)
    for each in unsettled:
        exchange = each.opened.exchange
        if (
            each.status is _MATCHED
            and exchange not in found
            and each.trade.condition_id not in halted
            and failing.isdisjoint(_wallets_of(each))
        ):
            found[exchange] = (now_ms - each.trade.matched_at_ms) // 1000
            if len(found) == exchanges:
                break
    return {exchange: lag_s for exchange, lag_s in found.items() if lag_s > LAG_TOLERATED_S}


def _wallets_of(unsettled: UnsettledTrade) -> list[Address]:
    trade = unsettled.trade
    return [trade.taker, *(fill.maker for fill in trade.fills)]


def _would_cross(market: Market, command: PlaceOrder) -> bool:
    """Return whether an order meets the best price of the other side."""
    book, terms = market.book, command.terms
    order_side = command.order.side
    side = book.bids if is_bid(order_side, is_yes=command.is_yes) else book.asks
    price_ticks = terms.price_ticks * (side.ticks_per_one // terms.ticks_per_one)
    rank = price_ticks if order_side is Side.BUY else side.ticks_per_one - price_ticks
    return rank + side.opposite.best_rank >= side.ticks_per_one


def _meets_expiring(state: State, command: PlaceOrder, before_s: int) -> bool:
    """Return whether an order would meet one that leaves its book by then; one that is refused meets none."""
    next_s = state.next_expiry_s()
    if next_s is None or next_s > before_s:
        return False
    try:
        match = plan_order(state, command)
    except ForetellError:
        return False
    return match is not None and any(
        order.leaves_at_s is not None and order.leaves_at_s <= before_s for order, _ in match.fills
    )

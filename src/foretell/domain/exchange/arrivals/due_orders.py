"""Expired orders that an arriving order would meet.

Many orders may expire in one second. They are closed in parts, so some of them may still rest when an order
arrives: those that it could meet must be closed before.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from foretell.domain.exchange.book import is_bid
from foretell.domain.exchange.commands import PlaceOrder, ReleaseOrder
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.state import Market, State
from foretell.domain.values.amounts import exact_cost_units, whole_lots_units

WALKED_MAX: Final = 1_000
"""How many resting orders one look may walk: an order that arrives pays nothing for it."""


class OrdersInTheWay(NamedTuple):
    """Orders that are due and that an order could meet; `is_all` of them, or those that one look found."""

    due: list[LiveOrder]
    is_all: bool


def due_orders_met(
    state: State, command: PlaceOrder, orders_max: int, walked_max: int = WALKED_MAX
) -> OrdersInTheWay:
    """Return at most so many orders that are due and that the order could meet, in the order of the book.

    There may be some more than it meets, but never fewer if they are all.
    """
    market = state.market_by_id.get(command.condition_id)
    is_placed = command.order_id in state.placed and not isinstance(command, ReleaseOrder)
    if market is None or not market.is_open or is_placed:
        return OrdersInTheWay([], is_all=True)
    due: list[LiveOrder] = []
    orders, now_s = orders_met(market, command), command.at_ms // 1000
    for order in islice(orders, walked_max):
        if order.is_due(now_s):
            if len(due) == orders_max:
                return OrdersInTheWay(due, is_all=False)
            due.append(order)
    return OrdersInTheWay(due, is_all=next(orders, None) is None)


def orders_met(market: Market, command: PlaceOrder) -> Iterator[LiveOrder]:
    """Yield the resting orders that an order could meet, in the order of the book, until it would be filled.

    Orders that are due and those of its own wallet fill nothing.
    """
    terms, now_s, is_buy = command.terms, command.at_ms // 1000, command.order.side is Side.BUY
    ticks_per_one = market.book.ticks_per_one
    price_ticks = terms.price_ticks * (ticks_per_one // terms.ticks_per_one)
    met = market.book.side(is_bid=not is_bid(command.order.side, is_yes=command.is_yes))
    has_budget = terms.size_units is None
    left_units = terms.budget_units if terms.size_units is None else terms.size_units
    assert left_units is not None
    for order in met.walk(ticks_per_one - price_ticks if is_buy else price_ticks):
        if left_units <= 0:
            return
        yield order
        if not order.is_due(now_s) and order.maker != command.order.maker:
            rank = order.level.rank
            price = ticks_per_one - rank if is_buy else rank
            units = whole_lots_units(order.remaining_units, price, ticks_per_one)
            left_units -= exact_cost_units(units, price, ticks_per_one) if has_budget else units

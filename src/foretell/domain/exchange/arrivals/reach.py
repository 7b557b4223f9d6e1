"""The part of a book that an order which arrives would reach, from the sums of its levels.

A single order may rest for very little money, so that a walk over the resting orders can be long. An order that
is refused in the end, or only checked, would cost its sender nothing: it is decided here, in a time that grows
with the prices of the book and with the orders of its own wallet in the market, which have limits.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import (
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    PostOnlyWouldCross,
)
from foretell.domain.errors.open_orders import CrossesOwnOrders
from foretell.domain.exchange.book import BookSide, Level, Order
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.matching import Taker
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.values.amounts import affordable_size_units, exact_cost_units

_BUY: Final = Side.BUY
_FILL_OR_KILL: Final = OrderType.FOK


class Reach(NamedTuple):
    """What a taker would meet: whether it trades at all, whether its whole size does, and its own orders there.

    Own orders are those at the prices that it reaches, even if it is filled before it comes to them.
    """

    is_trading: bool
    is_exhausted: bool
    own_orders: int


class _Own(NamedTuple):
    """The orders of the taker's wallet at a level, and the whole lots that they have."""

    orders: int
    units: int


def reach_of(side: BookSide[Order], taker: Taker, own_orders: Iterable[Order]) -> Reach:
    """Return what a taker of this side would meet now; `own_orders` are those of its wallet in the market.

    `plan_match` fills it to the same amount: all fills at a level are whole lots at one price, so that only
    their sum counts.
    """
    own_by_level = _by_level(side, taker.limit_rank, own_orders)
    ticks_per_one, has_budget, own = side.ticks_per_one, taker.size_units is None, 0
    left_units = taker.budget_units if taker.size_units is None else taker.size_units
    assert left_units is not None
    is_trading = is_exhausted = False
    for level in side.usedlevels(taker.limit_rank):
        price = ticks_per_one - level.rank if taker.is_buy else level.rank
        wanted = (
            affordable_size_units(left_units, price, ticks_per_one) if has_budget else left_units
        )
        wanted -= wanted % level.lot_units
        if wanted == 0:
            return Reach(is_trading, is_exhausted=True, own_orders=own)
        available = level.size_units - level.dust_units
        if level in own_by_level:
            mine = own_by_level[level]
            own += mine.orders
            available -= mine.units
        if available > wanted:
            return Reach(is_trading=True, is_exhausted=True, own_orders=own)
        if available > 0:
            is_trading, is_exhausted = True, available == wanted
            left_units -= (
                exact_cost_units(available, price, ticks_per_one) if has_budget else available
            )
    return Reach(is_trading, is_exhausted, own)


def _by_level(
    side: BookSide[Order], limit_rank: int, own_orders: Iterable[Order]
) -> dict[Level[Order], _Own]:
    own_by_level: dict[Level[Order], _Own] = {}
    for order in own_orders:
        level = order.level
        if level.side is side and level.rank >= limit_rank:
            orders, units = own_by_level.get(level, (0, 0))
            more = order.remaining_units - order.remaining_units % level.lot_units
            own_by_level[level] = _Own(orders + 1, units + more)
    return own_by_level


def check_reach(command: PlaceOrder, arrival: LiveOrder, own_orders_max: int | None = None) -> None:
    """Refuse an order that would be refused for what it meets in the present book."""
    reach = check_own_orders(command, arrival, own_orders_max)
    is_whole = command.order_type is _FILL_OR_KILL
    is_enough = reach.is_trading and (reach.is_exhausted or not is_whole)
    if command.is_post_only and (reach.is_trading or reach.own_orders):
        raise PostOnlyWouldCross
    if not (command.order_type.may_rest or is_enough):
        raise unmatched(command)


def check_own_orders(command: PlaceOrder, arrival: LiveOrder, own_orders_max: int | None) -> Reach:
    """Return what an order meets, or refuse it if that is more orders of its own wallet than it may cross."""
    wallet, met = arrival.account.wallet, arrival.level.side.opposite
    own_orders = wallet.orders_of(condition_id=arrival.condition_id) if wallet.orders_count else ()
    reach = reach_of(met, taker_of(command, arrival), own_orders)
    if own_orders_max is not None and reach.own_orders > own_orders_max:
        raise CrossesOwnOrders(own_orders_max)
    return reach


def unmatched(command: PlaceOrder) -> FillOrKillUnfilled | FillAndKillUnmatched:
    """Return the refusal of an order that only takes and finds too little."""
    is_whole = command.order_type is _FILL_OR_KILL
    return FillOrKillUnfilled() if is_whole else FillAndKillUnmatched()


def taker_of(command: PlaceOrder, arrival: LiveOrder) -> Taker:
    """Return the order in terms of the side that it meets."""
    level, terms = arrival.level, command.terms
    return Taker(
        arrival.account.wallet,
        arrival.side is _BUY,
        level.side.ticks_per_one - level.rank,
        terms.size_units,
        terms.budget_units,
    )

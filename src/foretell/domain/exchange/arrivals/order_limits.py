"""Limits of a wallet's open orders, for orders that arrive.

They bound what a request can cost others: a cancel, a check or a match walks the orders of its own wallet. A
command that is in the journal was within the limits of its time, so a replay applies it without any.
"""

from typing import Final, NamedTuple

from foretell.domain.errors.open_orders import TooManyOpenOrders
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.state import State


class OrderLimits(NamedTuple):
    """How many open orders a wallet may have, in all and in one market, and how many of them an order may cross.

    Delayed orders count as open ones of the wallet.
    """

    of_wallet: int
    of_market: int
    crossed: int


ORDER_LIMITS: Final = OrderLimits(of_wallet=10_000, of_market=5_000, crossed=500)
"""The limits of every wallet. A market maker with quotes at each price of a market has some thousand."""


def check_open_orders(state: State, arrival: LiveOrder, limits: OrderLimits) -> None:
    """Refuse an order that may rest or be delayed, if its wallet has as many as it may have."""
    wallet = arrival.account.wallet
    if wallet.orders_count + state.delays.count_of(wallet.address) >= limits.of_wallet:
        raise TooManyOpenOrders(wallet.address, limits.of_wallet)
    if wallet.orders_count_in(arrival.condition_id) >= limits.of_market:
        raise TooManyOpenOrders(wallet.address, limits.of_market, arrival.condition_id)

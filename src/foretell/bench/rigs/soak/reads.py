"""The reads of a soak, over every API that answers them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from foretell.bench.rigs.soak.clients import SoakClients, wallet_of

Read = Callable[[], Awaitable[Any]]


def reads_of(clients: SoakClients) -> list[Read]:
    """Return the reads, which take turns."""
    market, trader = clients.addresses.market, clients.traders[0]
    wallet, token = wallet_of(trader), market.token_yes
    condition = market.condition_id
    trading, data, discovery = clients.trading, clients.data, clients.discovery
    return [
        partial(trading.get, "/book", token_id=token),
        partial(trading.get, "/book", token_id=market.token_no),
        partial(trading.get, "/tick-size", token_id=token),
        partial(trading.get, "/prices-history", market=token, interval="1h"),
        partial(trader.get, "/data/orders"),
        partial(trader.get, "/data/trades"),
        partial(data.get, "/positions", user=wallet),
        partial(data.get, "/activity", user=wallet),
        partial(data.get, "/trades", market=condition),
        partial(data.get, "/holders", market=condition),
        partial(data.get, "/v1/leaderboard"),
        partial(discovery.get, "/markets", limit=5),
        partial(discovery.get, "/events", limit=5),
        partial(discovery.get, "/public-search", q="rain"),
    ]

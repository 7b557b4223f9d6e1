"""Orders before a soak, which fill what an exchange keeps up to a number of orders or requests.

An engine keeps its last 100,000 placements whole, so at ten orders a second its memory grows for three hours, and then
no more. A soak that measures growth from an empty exchange would see only that.
"""

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from foretell.bench.rigs.soak.clients import Seen, SoakClients
from foretell.domain.errors.command import ApiRefused, ApiUnreachable
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.exchange.state import PLACEMENTS_KEPT_MAX
from foretell.sdk.trading import TradingClient, order_body

FILLING_ORDERS: Final = PLACEMENTS_KEPT_MAX * 5 // 4
"""More than are kept whole, by so many that the set of ids does not grow during the default load.

It takes two megabytes when it has 20,000 ids, and the next two at 79,000.
"""
ORDERS_PER_REQUEST: Final = 15
SIZE_UNITS: Final = 5_000_000
COST_UNITS: Final = SIZE_UNITS // 100
"""A bid at one cent, which nobody takes."""


async def fill(clients: SoakClients, orders: int, salts: Iterator[int], seen: Seen) -> None:
    """Have the traders place and cancel so many orders, as fast as the exchange takes them."""
    requests = itertools.repeat(None, -(-orders // ORDERS_PER_REQUEST))
    async with asyncio.TaskGroup() as group:
        for trader in clients.traders:
            group.create_task(
                _fill(trader, clients.addresses.market.token_yes, requests, salts, seen)
            )


async def _fill(
    trader: TradingClient, token: str, requests: Iterator[None], salts: Iterator[int], seen: Seen
) -> None:
    for _ in requests:
        try:
            placed = await trader.send("POST", "/orders", _bodies(trader, token, salts))
            await trader.send("DELETE", "/orders", _ids(placed, seen))
        except (ApiRefused, ApiUnreachable) as failure:
            seen.fault(failure.message)


def _bodies(trader: TradingClient, token: str, salts: Iterator[int]) -> list[dict[str, Any]]:
    assert trader.credentials is not None
    owner = trader.credentials.key_id
    return [
        order_body(
            trader.sign_order(token, Side.BUY, SIZE_UNITS, COST_UNITS, salt), owner, OrderType.GTC
        )
        for salt in itertools.islice(salts, ORDERS_PER_REQUEST)
    ]


def _ids(placed: Sequence[Mapping[str, Any]], seen: Seen) -> list[str]:
    """Return the ids of the orders that were placed; any other is a fault."""
    for answer in placed:
        if answer["status"] != "live":
            seen.fault(f"an order was not placed: {answer}")
    return [answer["orderID"] for answer in placed if answer["status"] == "live"]

"""The audit after a soak: every accepted order is found again, and every trade settles."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

from foretell.bench.rigs.soak.clients import Seen, SoakClients
from foretell.domain.errors.command import ApiRefused, ApiUnreachable
from foretell.sdk.trading import TradingClient

LOOKUPS_AT_ONCE: Final = 16
SETTLED_WITHIN_S: Final = 60.0
"""After the end of the load."""
LOOK_S: Final = 1.0
LAST_PAGE: Final = "LTE="


class AcceptedOrder(NamedTuple):
    """An order that was accepted: who placed it, and the status that it must have."""

    trader: TradingClient
    status: str


async def lost_orders(accepted: Mapping[str, AcceptedOrder], seen: Seen) -> int:
    """Return the number of accepted orders that are not found, or not in the status that they must have."""
    orders = iter(accepted.items())
    counts = await asyncio.gather(*(_lost_among(orders, seen) for _ in range(LOOKUPS_AT_ONCE)))
    return sum(counts)


async def _lost_among(orders: Any, seen: Seen) -> int:
    lost = 0
    for order_id, (trader, status) in orders:
        try:
            found = (await trader.get(f"/data/order/{order_id}"))["status"]
        except (ApiRefused, ApiUnreachable) as failure:
            found = failure.message
        if found != status:
            lost += 1
            seen.fault(f"order {order_id} is {found}, and must be {status}")
    return lost


async def unsettled_trades(clients: SoakClients, seen: Seen, ended_s: float) -> int:
    """Return the number of trades that are not confirmed a minute after the end of the load."""
    give_up_at_s = ended_s + SETTLED_WITHIN_S
    while seen.matched_at_s and time.monotonic() < give_up_at_s:  # noqa: ASYNC110 - few looks, once
        await asyncio.sleep(LOOK_S)
    for trade_id in seen.matched_at_s:
        seen.fault(f"no stream reported that trade {trade_id} settled")
    confirmed: set[str] = set()
    for trader in clients.traders:
        async for trade in _trades_of(trader):
            if trade["status"] == "CONFIRMED":
                confirmed.add(trade["id"])
    return len(seen.trades - confirmed)


async def _trades_of(trader: TradingClient) -> AsyncIterator[Any]:
    """Yield all trades of a trader, page by page."""
    cursor = ""
    while cursor != LAST_PAGE:
        query = {"next_cursor": cursor} if cursor else {}
        page = await trader.get("/data/trades", **query)
        for trade in page["data"]:
            yield trade
        cursor = page["next_cursor"]

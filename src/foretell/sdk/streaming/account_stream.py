"""A trader's own orders and trades as they change, complete over lost connections."""

import contextlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from foretell.sdk.orders import OwnTrade
from foretell.sdk.streaming.book import Message
from foretell.sdk.streaming.streams import Restarted, Stream, user_subscription
from foretell.sdk.trader import Trader

TRADES_KNOWN_MAX: Final = 10_000
OVERLAP_S: Final = 600
"""How far back trades are read again after a gap: a trade may settle long after its match."""


async def watch_account(
    trader: Trader, ws_url: str, attempts_max: int | None = None
) -> AsyncGenerator[Message]:
    """Yield the messages of the user channel.

    After a gap, each trade whose state was not seen yet follows as a message, read from the API with
    `"missed": true`. Orders are not repeated: `Trader.open_orders` has those that are left.
    """
    credentials = trader.credentials
    assert credentials is not None
    seen = _Seen()
    stream = Stream(f"{ws_url}/user", lambda: user_subscription(credentials), attempts_max)
    async with contextlib.aclosing(stream.events()) as events:
        async for event in events:
            if isinstance(event, Restarted):
                for missed in await _missed(trader, seen):
                    yield missed
                continue
            if event.get("event_type") == "trade":
                seen.note(event["id"], event["status"], int(event["match_time"]))
            yield event


class _Seen:
    """The last known state of each trade, and the time of the newest."""

    def __init__(self) -> None:
        self._status_by_trade: OrderedDict[str, str] = OrderedDict()
        self.newest_s: int | None = None

    def note(self, trade_id: str, status: str, matched_at_s: int) -> bool:
        """Keep a state, and return whether it is new."""
        is_new = self._status_by_trade.get(trade_id) != status
        self._status_by_trade[trade_id] = status
        if len(self._status_by_trade) > TRADES_KNOWN_MAX:
            self._status_by_trade.popitem(last=False)
        self.newest_s = max(self.newest_s or 0, matched_at_s)
        return is_new


async def _missed(trader: Trader, seen: _Seen) -> list[Message]:
    """Return the trades whose state is new, the oldest first."""
    since = {} if seen.newest_s is None else {"after": str(max(seen.newest_s - OVERLAP_S, 0))}
    trades: list[OwnTrade] = await trader.trades(**since)
    missed: list[dict[str, Any]] = [
        msgspec.to_builtins(trade) | {"event_type": "trade", "missed": True}
        for trade in reversed(trades)
        if seen.note(trade.id, trade.status, int(trade.match_time))
    ]
    return missed

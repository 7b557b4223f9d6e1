"""Books of many markets, and clients that take their frames or leave them."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from tests.rigs.values import EXCHANGE, NOW_MS, an_asset, an_open_market, some_rules

from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.effects import LevelChange, MarketRestored
from foretell.engine.protocol.requests import committed_effects
from foretell.trading.books.books import PublicBooks
from foretell.trading.streams.book_dumps import BookDumps
from foretell.trading.streams.connection import Connection, Socket
from foretell.trading.streams.flush_queue import SendBudget


def both_tokens(*markets: str) -> list[str]:
    return [an_asset(is_yes=is_yes, market=name) for name in markets for is_yes in (True, False)]


def names(count: int) -> list[str]:
    return [f"market {number}" for number in range(count)]


def books_of(markets: Sequence[str], levels: int = 0) -> PublicBooks:
    """Return books with as many bids each."""
    books = PublicBooks(EXCHANGE)
    bids = tuple(
        LevelChange(is_bid=True, level=LevelSize(at, 10**7)) for at in range(1, levels + 1)
    )
    books.on_committed(
        committed_effects(
            1,
            [
                MarketRestored(
                    market=an_open_market(name),
                    rules=some_rules(1_000),
                    is_open=True,
                    levels=bids,
                    best_bid_ticks=levels or None,
                    best_ask_ticks=None,
                    last_price_ticks=None,
                    last_side=None,
                    changed_at_ms=NOW_MS,
                )
                for name in markets
            ],
        )
    )
    return books


class Taker:
    """A client of the market channel that takes its frames, unless it is held."""

    def __init__(
        self,
        name: str,
        client: str = "",
        budget: SendBudget | None = None,
        *,
        is_held: bool = False,
    ) -> None:
        self.connection = Connection(name, budget, channel="market", client=client)
        self.frames: list[str] = []
        self.messages: list[dict[str, Any]] = []
        """Those of arrays one by one."""
        self.taking = asyncio.Event()
        if not is_held:
            self.taking.set()
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(self.connection.write(Socket(self._receive, self._send)))
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._writer is not None
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)

    @property
    def tokens(self) -> list[str]:
        """The tokens of the books that came."""
        return [each["asset_id"] for each in self.messages if each["event_type"] == "book"]

    async def _receive(self) -> Any:
        await asyncio.Event().wait()

    async def _send(self, message: Any) -> None:
        await self.taking.wait()
        if "text" in message:
            self.frames.append(message["text"])
            parsed = json.loads(message["text"])
            self.messages += parsed if isinstance(parsed, list) else [parsed]


async def turns_until(dumps: BookDumps, waiting: int = 0) -> AsyncIterator[int]:
    """Turn the event loop, and yield the tokens whose books were sent in each turn, until few wait."""
    while (before := len(dumps)) > waiting:
        await asyncio.sleep(0)
        yield before - len(dumps)

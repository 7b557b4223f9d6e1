"""The markets and payouts that an engine has looked at, so that each is read once, not each second.

Markets are numbered in the order of their opening, so those after the last one are new. If that one is no longer there,
the tables were set back, and all are read again. Payouts are read from the last block on whose payouts were looked at, or
all of them when that block is no longer on the chain.

The orders of a resolved market are closed in parts, so that everybody else is served in between. A process that ends
between two parts goes on at its next start, whatever the chain has then: trading ended with the first part.
"""

import asyncio
from typing import Final

from foretell.domain.exchange.commands import OpenMarket, ResolveMarket
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.sharding import ShardPlace
from foretell.engine.writer.engine import Engine
from foretell.store.creation.markets import MarketRow, load_markets_from
from foretell.store.database import Database
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS, Block, load_block_hash, load_last_block
from foretell.store.index.conditions import load_payouts, load_payouts_since

CLOSED_PER_COMMAND_MAX: Final = 250
"""How many orders of a resolved market one command closes."""


class SeenMarkets:
    """What a feed has read of the markets; a new one reads all of them again, and submits what the engine lacks."""

    def __init__(self, closed_per_command_max: int = CLOSED_PER_COMMAND_MAX) -> None:
        self.foreign_tokens: set[AssetId] = set()
        """Of the markets of other shards."""
        self._market_id, self._condition_id = 0, Bytes32("")
        """Of the last market that was looked at."""
        self._unread: dict[Bytes32, None] = {}
        """Markets that are open, and whose payouts were not looked at: they may be older than the market."""
        self._block: Block | None = None
        """The last one whose payouts were looked at."""
        self._closed_per_command_max = closed_per_command_max
        self._closing: dict[Bytes32, None] | None = None
        """None before the first look."""

    async def open_new(self, database: Database, engine: Engine, place: ShardPlace) -> None:
        """Open the shard's markets that the engine does not have."""
        async with database.reading() as tx:
            markets = await load_markets_from(tx, self._market_id)
            if self._market_id:
                if markets and markets[0][1].condition_id == self._condition_id:
                    del markets[0]
                else:
                    self.foreign_tokens.clear()
                    markets = await load_markets_from(tx, 0)
        for market_id, market in markets:
            if not place.has(market.condition_id):
                self.foreign_tokens |= {AssetId(str(token)) for token in market.tokens}
            else:
                if market.condition_id not in engine.state.market_by_id:
                    await engine.submit(_opening(market, engine.clock_ms()))
                self._unread[market.condition_id] = None
            self._market_id, self._condition_id = market_id, market.condition_id

    async def resolve(self, database: Database, engine: Engine) -> None:
        """Resolve the markets whose payouts are new, or older than the market."""
        await self._close_orders(engine)
        async with database.reading() as tx:
            last = await load_last_block(tx)
            if last is not None and last == self._block and not self._unread:
                return
            since = BEFORE_ALL_BLOCKS
            if self._block is not None:
                number = self._block.block_number
                if await load_block_hash(tx, number) == self._block.block_hash:
                    since = number
            unread = list(self._unread)
            payouts = await load_payouts_since(tx, since)
            if since != BEFORE_ALL_BLOCKS:
                payouts += await load_payouts(tx, unread)
        for condition_id in dict.fromkeys(payout.condition_id for payout in payouts):
            market = engine.state.market_by_id.get(condition_id)
            if market is not None and market.is_open:
                self._closing_of(engine)[condition_id] = None
                await self._resolve(engine, condition_id)
        await self._close_orders(engine)
        for condition_id in unread:
            del self._unread[condition_id]
        self._block = last

    async def _resolve(self, engine: Engine, condition_id: Bytes32) -> None:
        """End trading in a market, and close the first of its orders."""
        at_ms, orders_max = engine.clock_ms(), self._closed_per_command_max
        await engine.submit(ResolveMarket(at_ms, condition_id, orders_max))

    async def _close_orders(self, engine: Engine) -> None:
        """Close the orders that resolved markets still have."""
        closing, markets = self._closing_of(engine), engine.state.market_by_id
        for condition_id in list(closing):
            while engine.state.has_orders(markets[condition_id]):
                await asyncio.sleep(0)
                await self._resolve(engine, condition_id)
            del closing[condition_id]

    def _closing_of(self, engine: Engine) -> dict[Bytes32, None]:
        """Return the resolved markets that may have orders still; the first time, the engine is searched for them."""
        if self._closing is None:
            state = engine.state
            self._closing = {
                condition_id: None
                for condition_id, market in state.market_by_id.items()
                if not market.is_open and state.has_orders(market)
            }
        return self._closing


def _opening(market: MarketRow, at_ms: int) -> OpenMarket:
    return OpenMarket(
        at_ms=at_ms,
        condition_id=market.condition_id,
        token_yes=AssetId(str(market.tokens.yes)),
        token_no=AssetId(str(market.tokens.no)),
        exchange=market.exchange,
        rules=MarketRules(market.ticks_per_one, market.size_units_min, market.fee_rate_bps),
    )

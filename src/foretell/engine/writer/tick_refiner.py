"""Markets that came to trade where their tick is too coarse: seen in what the engine tells.

What becomes of their tick is the domain's rule. The change is a command as any other, sequenced in
the journal after the trade that it follows, so a replay asks no rule. A start hears of the last price
of each market, and makes up for a change that a crash came before if that price is still at the edge.
"""

import asyncio
from typing import Final

from foretell.domain.errors.families import Unavailable
from foretell.domain.exchange.commands import ChangeTick
from foretell.domain.exchange.effects import MarketRestored, TradeMatched
from foretell.domain.exchange.tick_size import ticks_after_trade
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.engine import Engine

RETRY_S: Final = 1.0


class TickRefiner:
    """The markets of one engine whose tick is to become finer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ticks_by_id: dict[Bytes32, int] = {}
        self._wakes = asyncio.Event()

    def on_committed(self, committed: CommittedCommand) -> None:
        """Look at the price of every trade, and at the last one of a market that is restored."""
        for effect in committed.effects:
            if isinstance(effect, TradeMatched):
                trade = effect.trade
                last_price = trade.fills[-1].price_ticks
                self._judge(trade.condition_id, trade.ticks_per_one, last_price)
            elif isinstance(effect, MarketRestored) and effect.last_price_ticks is not None:
                ticks_per_one = effect.rules.ticks_per_one
                self._judge(effect.market.condition_id, ticks_per_one, effect.last_price_ticks)

    async def run(self) -> None:
        """Change, for ever, the ticks that are too coarse; what cannot be done now is tried again."""
        while True:
            await self._wakes.wait()
            try:
                await self._change()
            except Unavailable:
                await asyncio.sleep(RETRY_S)

    def _judge(self, condition_id: Bytes32, ticks_per_one: int, last_price_ticks: int) -> None:
        wanted = ticks_after_trade(ticks_per_one, last_price_ticks)
        if wanted != ticks_per_one:
            self._ticks_by_id[condition_id] = wanted
            self._wakes.set()

    async def _change(self) -> None:
        while self._ticks_by_id:
            condition_id, wanted = next(iter(self._ticks_by_id.items()))
            market = self._engine.state.market_by_id[condition_id]
            if market.rules.ticks_per_one < wanted:
                at_ms = self._engine.clock_ms()
                await self._engine.submit(ChangeTick(at_ms, condition_id, wanted))
            del self._ticks_by_id[condition_id]
        self._wakes.clear()

"""The refiner of ticks: markets that trade near 0 or 1 get a finer tick.

The domain decides the new tick. The change is a command, sequenced in the journal after the trade
that it follows, so a replay needs no rule. At a start the last price of each market is published,
so a change that a crash prevented is made then if that price is still at the edge.
"""

from typing import Final

from foretell.domain.errors.families import Unavailable
from foretell.domain.exchange.commands import ChangeTick
from foretell.domain.exchange.decision import Done, Placed
from foretell.domain.exchange.effects import MarketRestored
from foretell.domain.exchange.tick_size import ticks_after_trade
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.engine import Engine
from foretell.runtime.watch import Watch
from foretell.runtime.worker import PollIntervals, run_worker

PACE: Final = PollIntervals(busy_s=0.0, idle_s=15.0)


class TickRefiner:
    """The markets of one engine whose ticks must become finer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.ticks_by_id: dict[Bytes32, int] = {}
        self._watch = Watch()

    def on_committed(self, committed: CommittedCommand) -> None:
        """Check the price of every trade, and the last price of a restored market."""
        decision = committed.decision
        if isinstance(decision, Placed):
            for trade in decision.trades:
                last_price = trade.fills[-1].price_ticks
                self._check(trade.condition_id, trade.ticks_per_one, last_price)
        elif isinstance(decision, Done):
            for effect in decision.effects:
                if isinstance(effect, MarketRestored) and effect.last_price_ticks is not None:
                    ticks_per_one = effect.rules.ticks_per_one
                    self._check(effect.market.condition_id, ticks_per_one, effect.last_price_ticks)

    async def run(self) -> None:
        """Change ticks that are too coarse, until cancelled; retry while the engine refuses."""
        await run_worker("ticks", self.run_once, PACE, self._watch.wait, expected=(Unavailable,))

    async def run_once(self) -> bool:
        """Change the ticks that are too coarse, and return that none is left."""
        while self.ticks_by_id:
            condition_id, finer = next(iter(self.ticks_by_id.items()))
            market = self._engine.state.market_by_id[condition_id]
            if market.rules.ticks_per_one < finer:
                at_ms = self._engine.clock_ms()
                await self._engine.submit(ChangeTick(at_ms, condition_id, finer))
            del self.ticks_by_id[condition_id]
        return False

    def _check(self, condition_id: Bytes32, ticks_per_one: int, last_price_ticks: int) -> None:
        finer = ticks_after_trade(ticks_per_one, last_price_ticks)
        if finer != ticks_per_one:
            self.ticks_by_id[condition_id] = finer
            self._watch.wake()

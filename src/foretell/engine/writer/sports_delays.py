"""The sports markets that have no delay yet: those that were opened since the last look."""

from typing import Final

from foretell.domain.exchange.commands import DelayMarket
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.creation.games import load_sports_conditions
from foretell.store.database import Transaction

MARKETS_PER_QUERY_MAX: Final = 1_000
COMMITTED_LATE_MARKETS: Final = 500
"""How far below the newest market another one may show in the table, committed later by another process."""


class SportsDelays:
    """Remembers how far it has read the table, and the markets that the engine has not opened yet."""

    def __init__(self) -> None:
        self._last_market = 0
        self._waiting: dict[Bytes32, int] = {}

    async def changes(
        self, tx: Transaction, state: State, delay_ms: int, at_ms: int
    ) -> list[DelayMarket]:
        """Return the delays of sports markets that differ from this one; without one, those to end."""
        known = state.delays.ms_by_market
        if delay_ms:
            await self._read(tx)
            wanted = list(self._waiting)
        else:
            wanted = list(known)
        changes = []
        for condition_id in wanted:
            market = state.market_by_id.get(condition_id)
            is_due = market is not None and market.is_open
            if is_due and known.get(condition_id, 0) != delay_ms:
                changes.append(DelayMarket(at_ms, condition_id, delay_ms))
            elif market is not None or self._is_old(condition_id):
                self._waiting.pop(condition_id, None)
        return changes

    async def _read(self, tx: Transaction) -> None:
        after = max(0, self._last_market - COMMITTED_LATE_MARKETS)
        is_full = True
        while is_full:
            found = await load_sports_conditions(tx, after, MARKETS_PER_QUERY_MAX)
            self._waiting |= {each.condition_id: each.market_id for each in found}
            is_full = len(found) == MARKETS_PER_QUERY_MAX
            after = found[-1].market_id if found else after
        self._last_market = max(self._last_market, after)

    def _is_old(self, condition_id: Bytes32) -> bool:
        """Return whether the engine would have opened the market: then it is another shard's."""
        market_id = self._waiting.get(condition_id, 0)
        return market_id <= self._last_market - COMMITTED_LATE_MARKETS

"""The lag of settlement, and the orders that would expire before it has caught up.

An order whose answer says `matched` fails on the chain if settlement reaches it after its expiration. So its
margin, which is fixed in the book, grows with the lag where orders arrive: what may not settle in time is
refused before anybody is promised anything. A trade that failed a try is no sign of a lag, else two wallets
could keep such orders out.
"""

from typing import Final

from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S
from foretell.domain.exchange.trade import TradeStatus
from foretell.engine.writer.engine import Engine

LAG_TOLERATED_S: Final = 20
"""A lag that the margin of every order covers."""
LOOK_PAUSE_MS: Final = 1_000
"""Between two looks at the trades that wait: orders may arrive by the thousand."""


class SettlementLag:
    """How long the oldest trade of an engine has waited for its first try."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seconds = 0
        self._looked_at_ms = -LOOK_PAUSE_MS

    def is_too_long_for(self, command: PlaceOrder) -> bool:
        """Return whether an order may expire before settlement reaches a trade of it.

        An order that was placed before has its answer already.
        """
        expiration_s = command.order.expiration_s
        if not expiration_s or command.order_id in self._engine.state.placement_by_order:
            return False
        now_ms = self._engine.clock_ms()
        if now_ms >= self._looked_at_ms + LOOK_PAUSE_MS:
            self._looked_at_ms = now_ms
            self._seconds = self._seconds_at(now_ms)
        margin_s = EXPIRATION_MARGIN_S + self._seconds
        return self._seconds > LAG_TOLERATED_S and expiration_s <= now_ms // 1000 + margin_s

    def _seconds_at(self, now_ms: int) -> int:
        waiting_ms = (
            now_ms - each.trade.matched_at_ms
            for each in self._engine.state.unsettled_trades.values()
            if each.status is TradeStatus.MATCHED
        )
        return max(waiting_ms, default=0) // 1000

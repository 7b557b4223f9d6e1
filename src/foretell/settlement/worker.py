"""Settlement's loops: what was sent is watched, what is matched is brought further."""

import asyncio
from typing import Final

import structlog

from foretell.domain.errors.chain import ExchangeClosed
from foretell.settlement.context import SettlementContext
from foretell.settlement.settle import look
from foretell.store.outbox.transactions import SETTLEMENT
from foretell.store.trading.trades import TOPIC as TRADES_TOPIC

POLL_S: Final = 0.5
IDLE_POLL_S: Final = 15.0
CLOSED_POLL_S: Final = 5.0

_log: Final = structlog.get_logger(__name__)


async def run(context: SettlementContext) -> None:
    """Work until cancelled; the operator's transactions are watched here too."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(context.operator.run(), name="operator's sender")
        tasks.create_task(_work(context), name="settlements")


async def _work(context: SettlementContext) -> None:
    """Look again and again; while the exchange is not open to the operator, say loudly why not."""
    watch = await context.database.watch(TRADES_TOPIC, SETTLEMENT.topic)
    is_closed = False
    while True:
        is_unsettled = True
        try:
            is_unsettled = await look(context)
        except ExchangeClosed as closed:
            is_closed = True
            _log.error("settlement waits for the exchange", cause=closed.message)
            await asyncio.sleep(CLOSED_POLL_S)
            continue
        except Exception:  # noqa: BLE001 - a loop that must go on; structlog keeps the trace
            _log.exception("a look at the settlements failed, and the next one follows")
        else:
            if is_closed:
                _log.warning("settlement goes on")
            is_closed = False
        await watch.wait(POLL_S if is_unsettled else IDLE_POLL_S)

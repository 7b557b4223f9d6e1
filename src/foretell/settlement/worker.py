"""Settlement's worker: watches what was sent, and brings matched trades further."""

import asyncio
from functools import partial
from typing import Final

from foretell.domain.errors.chain import ExchangeClosed
from foretell.runtime.worker import Pace, run_worker
from foretell.settlement.context import SettlementContext
from foretell.settlement.settle import run_once
from foretell.store.outbox.transactions import SETTLEMENT
from foretell.store.trading.trades import TOPIC as TRADES_TOPIC

PACE: Final = Pace(busy_s=0.5, idle_s=15.0)


async def run(context: SettlementContext) -> None:
    """Work until cancelled; the operator's transactions are watched here too."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(context.operator.run(), name="operator's sender")
        tasks.create_task(_settle(context), name="settlements")


async def _settle(context: SettlementContext) -> None:
    """Settle again and again; an exchange that is closed to the operator is waited for."""
    watch = await context.database.watch(TRADES_TOPIC, SETTLEMENT.topic)
    step = partial(run_once, context)
    await run_worker("settlements", step, PACE, watch.wait, expected=(ExchangeClosed,))

"""Worker of settlement: watches sent transactions and settles matched trades."""

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
    """Settle trades and watch the operator's transactions until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(context.operator.run(), name="operator's sender")
        tasks.create_task(run_settlements(context), name="settlements")


async def run_settlements(context: SettlementContext) -> None:
    """Settle until cancelled; while an exchange is closed to the operator, wait for it."""
    watch = await context.database.watch(TRADES_TOPIC, SETTLEMENT.topic)
    step = partial(run_once, context)
    await run_worker("settlements", step, PACE, watch.wait, expected=(ExchangeClosed,))

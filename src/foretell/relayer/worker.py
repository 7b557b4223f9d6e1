"""The relayer's worker: watches what was sent, and brings open requests further."""

import asyncio
from functools import partial
from typing import Final

from foretell.relayer.context import RelayerContext
from foretell.relayer.resume import run_once
from foretell.runtime.worker import Pace, run_worker
from foretell.store.outbox.relays import TOPIC
from foretell.store.outbox.transactions import RELAYED
from foretell.store.trading.api_keys import TOPIC as KEYS_TOPIC

PACE: Final = Pace(busy_s=1.0, idle_s=15.0)


async def run(context: RelayerContext) -> None:
    """Work until cancelled; the relayer's own transactions are watched here too."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(context.sender.run(), name="relayer's sender")
        tasks.create_task(_relay(context), name="relay requests")
        tasks.create_task(_follow_revocations(context), name="relayer's revocations")


async def _relay(context: RelayerContext) -> None:
    watch = await context.database.watch(TOPIC, RELAYED.topic)
    await run_worker("relay requests", partial(run_once, context), PACE, watch.wait)


async def _follow_revocations(context: RelayerContext) -> None:
    """Forget keys that another process may have revoked."""
    watch = await context.database.watch(KEYS_TOPIC)
    while True:
        if await watch.wait(PACE.idle_s):
            context.key_ring.forget_all()

"""The relayer's worker: watches sent transactions and advances open requests."""

import asyncio
from functools import partial
from typing import Final

from foretell.relayer.context import RelayerContext
from foretell.relayer.resume import run_once
from foretell.runtime.worker import PollIntervals, run_worker
from foretell.store.outbox.relays import TOPIC
from foretell.store.outbox.transactions import RELAYED
from foretell.store.trading.api_keys import TOPIC as KEYS_TOPIC

PACE: Final = PollIntervals(busy_s=1.0, idle_s=15.0)


async def run(context: RelayerContext) -> None:
    """Run until cancelled: the sender, the requests, and the revocations of keys."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(context.sender.run(), name="relayer's sender")
        tasks.create_task(_relay(context), name="relay requests")
        tasks.create_task(_follow_revocations(context), name="relayer's revocations")


async def _relay(context: RelayerContext) -> None:
    watch = await context.database.watch(TOPIC, RELAYED.topic)
    await run_worker("relay requests", partial(run_once, context), PACE, watch.wait)


async def _follow_revocations(context: RelayerContext) -> None:
    """Empty the cache of keys when another process may have revoked some."""
    watch = await context.database.watch(KEYS_TOPIC)
    while True:
        if await watch.wait(PACE.idle_s):
            context.key_ring.forget_all()

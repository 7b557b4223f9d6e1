"""The relayer's loops: what was sent is watched, what is open is brought further."""

import asyncio
from typing import Final

import structlog

from foretell.relayer.context import RelayerContext
from foretell.relayer.resume import look
from foretell.store.outbox.relays import TOPIC
from foretell.store.outbox.transactions import RELAYED
from foretell.store.trading.api_keys import TOPIC as KEYS_TOPIC

POLL_S: Final = 1.0
IDLE_POLL_S: Final = 15.0

_log: Final = structlog.get_logger(__name__)


async def run(context: RelayerContext) -> None:
    """Work until cancelled; the relayer's own transactions are watched here too."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(context.sender.run(), name="relayer's sender")
        tasks.create_task(_work(context), name="relay requests")
        tasks.create_task(_follow_revocations(context), name="relayer's revocations")


async def _work(context: RelayerContext) -> None:
    watch = await context.database.watch(TOPIC, RELAYED.topic)
    while True:
        open_requests = 1
        try:
            open_requests = await look(context)
        except Exception:  # noqa: BLE001 - a loop that must go on; structlog keeps the trace
            _log.exception("a look at the relay requests failed, and the next one follows")
        await watch.wait(POLL_S if open_requests else IDLE_POLL_S)


async def _follow_revocations(context: RelayerContext) -> None:
    """Forget keys that another process may have revoked."""
    watch = await context.database.watch(KEYS_TOPIC)
    while True:
        if await watch.wait(IDLE_POLL_S):
            context.key_ring.forget_all()

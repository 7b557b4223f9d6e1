"""The relayer's worker: watches sent transactions and advances open requests."""

from functools import partial
from typing import Final

from foretell.relayer.context import RelayerContext
from foretell.relayer.resume import run_once
from foretell.runtime.loops import run_together
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.store.outbox.relays import TOPIC
from foretell.store.outbox.transactions import RELAYED
from foretell.store.trading.api_keys import TOPIC as KEYS_TOPIC

PACE: Final = PollIntervals(busy_s=1.0, idle_s=15.0)


async def run(context: RelayerContext) -> None:
    """Run until cancelled: the sender, the requests, and the revocations of keys."""
    await run_together(
        [
            context.sender.run,
            partial(_relay, context),
            partial(_follow_revocations, context),
        ]
    )


async def _relay(context: RelayerContext) -> None:
    watch = partial(context.database.watching, TOPIC, RELAYED.topic)
    await run_watching_worker("relay requests", partial(run_once, context), PACE, watch)


async def _follow_revocations(context: RelayerContext) -> None:
    """Empty the cache of keys when another process may have revoked some, and at intervals."""

    async def forget_keys() -> bool:
        context.key_ring.forget_all()
        return False

    watch = partial(context.database.watching, KEYS_TOPIC)
    await run_watching_worker("relayer's revocations", forget_keys, PACE, watch)

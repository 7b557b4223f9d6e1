"""The relayer's worker: watches sent transactions, advances open requests, and forgets refused ones."""

from functools import partial
from typing import Final

from foretell.domain.relay.budgets import DAY_MS
from foretell.relayer.context import RelayerContext
from foretell.relayer.resume import run_once
from foretell.runtime.loops import run_together
from foretell.runtime.worker import PollIntervals, run_watching_worker, run_worker
from foretell.store.outbox.relays import TOPIC, forget_refused_relays
from foretell.store.outbox.transactions import RELAYED
from foretell.store.trading.api_keys import TOPIC as KEYS_TOPIC

PACE: Final = PollIntervals(busy_s=1.0, idle_s=15.0)
CLEANING: Final = PollIntervals(busy_s=1.0, idle_s=300.0)
REFUSED_KEPT_MS: Final = DAY_MS
"""How long a request that was refused before it was sent is shown."""
FORGOTTEN_MAX: Final = 500
"""Refused requests that one transaction deletes."""


async def run(context: RelayerContext) -> None:
    """Run until cancelled: the sender, the requests, those that were refused, and the revocations of keys."""
    await run_together(
        [
            context.sender.run,
            partial(_relay, context),
            partial(
                run_worker, "refused relay requests", partial(forget_refused, context), CLEANING
            ),
            partial(_follow_revocations, context),
        ]
    )


async def forget_refused(context: RelayerContext) -> bool:
    """Delete requests that were refused long ago; return whether there may be more."""
    before_ms = context.now_ms() - REFUSED_KEPT_MS
    async with context.database.writing() as tx:
        return await forget_refused_relays(tx, before_ms, FORGOTTEN_MAX) == FORGOTTEN_MAX


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

"""Worker of the indexer: follows the chain from the tables' last block until cancelled."""

import asyncio
from typing import Final

import structlog

from foretell.domain.errors.chain import ChainUnavailable
from foretell.indexer.context import IndexerContext
from foretell.indexer.follow import Step, follow
from foretell.indexer.head_watch import HeadWatch
from foretell.runtime.worker import PollIntervals, run_worker

NEXT_BLOCK_S: Final = 0.05
"""Most seconds until the next look after new blocks."""

log = structlog.get_logger(__name__)


async def run(context: IndexerContext) -> None:
    """Index until cancelled: range after range while behind, then once per poll interval.

    After new blocks the next look comes sooner: a chain that mines each transaction has more at once.
    """
    heads, look = HeadWatch(context.head_still_s), _NextLook()

    async def step() -> bool:
        followed = await follow(context)
        heads.see(followed.head_number, asyncio.get_running_loop().time())
        if context.head_clock is not None:
            context.head_clock.see(followed.head_number, followed.head_timestamp_s)
        _log_step(followed)
        look.after(followed)
        return followed.is_behind

    pace = PollIntervals(busy_s=0.0, idle_s=context.poll_interval_s)
    await run_worker("indexer", step, pace, look.wait, expected=(ChainUnavailable,))


class _NextLook:
    """The pause before the next look at the chain."""

    def __init__(self) -> None:
        self._has_new_blocks = False

    def after(self, step: Step) -> None:
        """Take what the last look found."""
        self._has_new_blocks = step.indexed_blocks > 0

    async def wait(self, seconds: float) -> None:
        """Return after so many seconds, or sooner after new blocks."""
        await asyncio.sleep(min(seconds, NEXT_BLOCK_S) if self._has_new_blocks else seconds)


def _log_step(step: Step) -> None:
    if step.unwound_blocks:
        log.warning("blocks were unwound", blocks=step.unwound_blocks, last=step.last)
    if step.ignored:
        log.info("logs were ignored", **step.ignored)

"""Worker of the indexer: follows the chain from the tables' last block until cancelled."""

import asyncio
from functools import partial

import structlog

from foretell.domain.errors.chain import ChainUnavailable
from foretell.indexer.context import IndexerContext
from foretell.indexer.follow import Step, follow
from foretell.indexer.head_watch import HeadWatch
from foretell.runtime.worker import PollIntervals, run_worker

log = structlog.get_logger(__name__)


async def run(context: IndexerContext) -> None:
    """Index until cancelled: range after range while behind, then once per poll interval."""
    pace = PollIntervals(busy_s=0.0, idle_s=context.poll_interval_s)
    heads = HeadWatch(context.head_still_s)
    await run_worker(
        "indexer", partial(_follow, context, heads), pace, expected=(ChainUnavailable,)
    )


async def _follow(context: IndexerContext, heads: HeadWatch) -> bool:
    step = await follow(context)
    heads.see(step.head_number, asyncio.get_running_loop().time())
    _log_step(step)
    return step.is_behind


def _log_step(step: Step) -> None:
    if step.unwound_blocks:
        log.warning("blocks were unwound", blocks=step.unwound_blocks, last=step.last)
    if step.ignored:
        log.info("logs were ignored", **step.ignored)

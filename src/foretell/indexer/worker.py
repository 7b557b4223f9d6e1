"""Follows the chain forever. Every failure is logged and tried again from the tables' last block."""

import asyncio

import structlog

from foretell.indexer.context import IndexerContext
from foretell.indexer.follow import Step, follow

log = structlog.get_logger(__name__)


async def run(context: IndexerContext) -> None:
    """Index until cancelled: range after range while behind, then as often as the poll says."""
    while True:
        try:
            step = await follow(context)
        except Exception:
            log.exception("the chain could not be indexed")
            await asyncio.sleep(context.retry_delay_s)
            continue
        _tell(step)
        await asyncio.sleep(0 if step.is_behind else context.poll_interval_s)


def _tell(step: Step) -> None:
    if step.unwound_blocks:
        log.warning("blocks were unwound", blocks=step.unwound_blocks, last=step.last)
    if step.ignored:
        log.info("logs were ignored", **step.ignored)

"""Halt markets that a reorganization of the chain removed, and resume those that came back.

A market opens after the confirmations that the operator asks for; a deeper reorganization may still undo
its creation. Its request keeps its status and its claims, since the transactions may be mined again. The
index says which markets may be lost, and the chain's own state which of them are.
"""

from functools import partial
from typing import Final

import structlog

from foretell.creation.context import CreationContext
from foretell.domain.errors.families import Upstream
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.store.creation.halted_markets import (
    load_halted,
    load_unindexed,
    record_halt,
    record_resumption,
)
from foretell.store.index.blocks import TOPIC as CHAIN_TOPIC

MARKETS_PER_LOOK_MAX: Final = 100
PACE: Final = PollIntervals(busy_s=1.0, idle_s=15.0)
LOST: Final = "halted: a reorganization of the chain removed market {}; it resumes when the chain has it again"

log = structlog.get_logger(__name__)


async def run(context: CreationContext) -> None:
    """Compare the markets with the chain after each block, until cancelled."""
    watch = partial(context.database.watching, CHAIN_TOPIC)
    step = partial(compare_markets, context)
    await run_watching_worker("lost markets", step, PACE, watch, expected=(Upstream,))


async def compare_markets(context: CreationContext) -> bool:
    """Halt the markets that the chain does not have, and resume others; return whether one is halted."""
    async with context.database.reading() as tx:
        unindexed = await load_unindexed(tx, MARKETS_PER_LOOK_MAX)
        halted = (await load_halted(tx))[:MARKETS_PER_LOOK_MAX]
    looked_at = list(dict.fromkeys((*unindexed, *halted)))
    if not looked_at:
        return False
    are_there = await context.reader.are_prepared([each.condition_id for each in looked_at])
    for market, is_there in zip(looked_at, are_there, strict=True):
        if not is_there and market not in halted:
            log.error("market halted, the chain lost it", condition_id=market.condition_id)
            message = LOST.format(market.condition_id)
            async with context.database.writing() as tx:
                await record_halt(tx, market, message, context.now_ms())
        elif is_there and market in halted and market not in unindexed:
            log.warning("market resumed", condition_id=market.condition_id)
            async with context.database.writing() as tx:
                await record_resumption(tx, market)
    return True

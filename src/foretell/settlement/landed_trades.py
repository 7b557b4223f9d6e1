"""Find trades that are on the chain already before they are sent.

A database that was restored from an older copy has trades that were settled since. The exchange would
refuse some of them as filled, and settle others a second time. So a process sends nothing before the
index has the newest block that the node had at its start, and no trade that the index shows as settled. A node
may name a wrong block once, so it is asked again each minute until the index has it.
A transaction that waits at the node and is not known here may carry any trade, from any of the accounts:
nothing is sent before a block has it.
"""

from collections.abc import Sequence
from typing import Final

import structlog

from foretell.domain.exchange.settlement import (
    PART_FIRST,
    RefusedOrder,
    Settlement,
    waiting_settlement,
)
from foretell.settlement.context import SettlementContext
from foretell.settlement.stored import Progress, load_matched, record
from foretell.settlement.unknown_txs import has_unknown_txs
from foretell.store.index.blocks import load_last_block
from foretell.store.outbox.landed_trades import load_landings

LANDED: Final = "settled by a transaction that is not known here"

HEAD_ASKED_EVERY_MS: Final = 60_000
"""Time after which the node is asked for its newest block again, while the index lacks the one that it named."""
CURE: Final = "wait until the index has the block; if no chain is that long, correct the node: it is asked again each minute"

log = structlog.get_logger(__name__)


async def has_index(context: SettlementContext) -> bool:
    """Return whether the index has read all blocks from before the start of this process.

    The same is asked again after a nonce was used by a transaction that is not known here. A lower block that
    the node names later takes the place of the first one, which was none then: blocks only become more, unless the node is
    more than a minute behind. A higher one does not, for an index that is behind would never have it.
    """
    start, now_ms = context.start, context.now_ms()
    if start.is_indexed:
        return True
    if start.head_number is None:
        if await has_unknown_txs(context):
            return False
        start.head_number, start.asked_ms = await context.operator.head(), now_ms
    async with context.database.reading() as tx:
        last = await load_last_block(tx)
    indexed = None if last is None else last.block_number
    start.is_indexed = indexed is not None and indexed >= start.head_number
    if not start.is_indexed and start.is_to_repeat(now_ms, HEAD_ASKED_EVERY_MS):
        start.asked_ms = now_ms
        log.warning("index lacks blocks", indexed=indexed, head=start.head_number, cure=CURE)
        newest = await context.operator.head()
        if indexed is None or newest >= indexed:  # else this answer is the wrong one
            start.head_number = min(start.head_number, newest)
    return start.is_indexed


async def without_landed(
    context: SettlementContext, unsent: Sequence[Settlement]
) -> Sequence[Settlement]:
    """Return the trades without those that are on the chain, in whole or in part.

    The engine reads of a whole one that it is settled. The fills of a part that is in a transaction of
    its own leave the trade together.
    """
    if not unsent:
        return unsent
    async with context.database.reading() as tx:
        landings = await load_landings(tx, [each.trade_id for each in unsent])
    if not landings:
        return unsent
    found = [each for each in unsent if each.trade_id in landings]
    for settlement, matched in zip(found, await load_matched(context, found), strict=True):
        trade_id, parts = settlement.trade_id, landings[settlement.trade_id]
        log.warning("trade is on the chain already", trade_id=trade_id, tx_hash=parts[0].tx_hash)
        landed = {order_id for part in parts for order_id in part.maker_order_ids}
        is_all = len(landed) == len(matched.row.trade.fills)
        leaving = parts[1:] if is_all else parts
        refused = [
            RefusedOrder(trade_id, order_id, number, LANDED, is_blamed=False)
            for number, part in enumerate(leaving, PART_FIRST)
            for order_id in sorted(part.maker_order_ids)
        ]
        waiting = waiting_settlement(settlement, context.now_ms(), context.options)
        await record(context, [Progress(settlement, waiting)], refused)
    return [each for each in unsent if each.trade_id not in landings]

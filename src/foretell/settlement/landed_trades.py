"""Find trades that are on the chain already before they are sent.

A database that was restored from an older copy has trades that were settled since. The exchange would
refuse some of them as filled, and settle others a second time. So a process sends nothing before the
index has the newest block that the node had at its start, and no trade that the index shows as settled.
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
from foretell.settlement.stored import load_matched, record
from foretell.settlement.unknown_txs import has_unknown_txs
from foretell.store.index.blocks import load_last_block
from foretell.store.outbox.landed_trades import load_landings

LANDED: Final = "settled by a transaction that is not known here"

log = structlog.get_logger(__name__)


async def has_index(context: SettlementContext) -> bool:
    """Return whether the index has read all blocks from before the start of this process.

    The same is asked again after a nonce was used by a transaction that is not known here.
    """
    start = context.start
    if start.is_indexed:
        return True
    if start.head_number is None:
        if await has_unknown_txs(context):
            return False
        start.head_number = await context.operator.head()
    async with context.database.reading() as tx:
        last = await load_last_block(tx)
    start.is_indexed = last is not None and last.block_number >= start.head_number
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
        await record(context, [waiting], refused)
    return [each for each in unsent if each.trade_id not in landings]

"""One step of the indexer: write the next range of blocks in one transaction.

The tables are always those of one block, the last indexed one. Starting, catching up, following
and recovering from a crash are all the same step: continue after that block.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from foretell.chain.logs import BlockLogs
from foretell.chain.rpc_types import BlockHeader
from foretell.chain.views import LATEST
from foretell.domain.errors.chain import ChainInconsistent
from foretell.indexer.block_times import check_times
from foretell.indexer.context import IndexerContext
from foretell.indexer.project import project
from foretell.indexer.reorg import check_alone, is_on_chain, unwind_to_ancestor
from foretell.store.index.blocks import Block, load_last_block, prune_blocks, record_blocks
from foretell.store.index.wallet_readings import WalletReading, record_readings


class Step(NamedTuple):
    """The result of one step: the newest indexed block, and the number and the time of the chain's head."""

    last: Block | None
    head_number: int
    head_timestamp_s: int
    indexed_blocks: int
    unwound_blocks: int
    ignored: Mapping[str, int]

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read at once."""
        return (
            self.indexed_blocks > 0
            and self.last is not None
            and self.last.block_number < self.head_number
        )


async def follow(context: IndexerContext) -> Step:
    """Advance the tables towards the head by at most one range of blocks."""
    head = await fetch_head(context)
    async with context.database.reading() as tx:
        last = await load_last_block(tx)
    unwound_blocks = 0
    if last is not None and not await is_on_chain(context.reader, last, head):
        kept = await unwind_to_ancestor(context, last, head)
        bottom = context.start_block - 1 if kept is None else kept.block_number
        unwound_blocks, last = last.block_number - bottom, kept
    first = context.start_block if last is None else last.block_number + 1
    if head.block_number < first:
        return Step(last, head.block_number, head.timestamp_s, 0, unwound_blocks, {})
    end = min(head.block_number, first + context.blocks_per_range_max - 1)
    parent_hash = None if last is None else last.block_hash
    found = await context.logs.read(first, end, parent_hash)
    below_s = None if last is None else last.timestamp_s
    await check_times(context.reader, [each.header for each in found], below_s)
    newest, wallets = block_of(found[-1].header), context.wallets
    readings = [] if wallets is None else await wallets.read(newest, head.block_number)
    ignored = await record_range(context, last, found, readings)
    return Step(newest, head.block_number, head.timestamp_s, len(found), unwound_blocks, ignored)


async def fetch_head(context: IndexerContext) -> BlockHeader:
    """Return the newest block of the node."""
    head = await context.reader.header(LATEST)
    if head is None:
        raise ChainInconsistent("it returned no newest block")
    return head


async def record_range(
    context: IndexerContext,
    last: Block | None,
    found: Sequence[BlockLogs],
    readings: Sequence[WalletReading] = (),
) -> Mapping[str, int]:
    """Write the rows of these blocks; return how many logs were ignored, by reason.

    The readings of wallets are true after the last of the blocks.

    Raises ChainInconsistent when another indexer has written the tables since `last` was read.
    """
    blocks = [block_of(each.header) for each in found]
    logs = [placed for each in found for placed in each.logs]
    async with context.database.writing() as tx:
        await check_alone(tx, last)
        state = await project(tx, context.contracts, blocks, logs)
        await record_readings(tx, readings, blocks[-1].block_number)
        await record_blocks(tx, blocks)
        await prune_blocks(tx, blocks[-1].block_number - context.reorg_blocks_max)
    return state.ignored + Counter({"log of no known shape": sum(each.ignored for each in found)})


def block_of(header: BlockHeader) -> Block:
    """Return the row of a header."""
    return Block(header.block_number, header.block_hash, header.parent_hash, header.timestamp_s)

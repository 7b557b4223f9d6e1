"""When the chain changes its mind: back to the last block that both it and the tables have."""

from collections.abc import Sequence

from foretell.chain.reader import Reader
from foretell.chain.rpc_types import BlockHeader
from foretell.domain.errors.chain import ReorgTooDeep
from foretell.indexer.context import IndexerContext
from foretell.store.index.blocks import TOPIC, Block, load_blocks_down
from foretell.store.index.unwind import unwind


async def is_on_chain(reader: Reader, block: Block, head: BlockHeader) -> bool:
    """Return whether the chain with this head has the block."""
    if head.block_number <= block.block_number:
        return head.block_hash == block.block_hash
    header = await reader.header(hex(block.block_number))
    return header is not None and header.block_hash == block.block_hash


async def unwind_to_ancestor(
    context: IndexerContext, last: Block, head: BlockHeader
) -> Block | None:
    """Leave every table as it was after the common ancestor, and return that; None is nothing.

    Refuses when the ancestor is further down than blocks are kept.
    """
    highest = min(last.block_number, head.block_number)
    async with context.database.reading() as tx:
        known = await load_blocks_down(tx, highest, context.reorg_blocks_max + 1)
    ancestor = await find_ancestor(context.reader, known)
    if ancestor is None and not _reaches(known, context.start_block, head):
        raise ReorgTooDeep(last.block_number, context.reorg_blocks_max)
    bottom = context.start_block - 1 if ancestor is None else ancestor.block_number
    async with context.database.writing() as tx:
        await unwind(tx, bottom)
        await tx.announce(TOPIC)
    return ancestor


async def find_ancestor(reader: Reader, known: Sequence[Block]) -> Block | None:
    """Return the highest of these blocks, given highest first, that the chain has.

    A block that is on the chain has all below it there too, so halving finds the highest.
    """
    above, found = 0, len(known)
    while above < found:
        middle = (above + found) // 2
        header = await reader.header(hex(known[middle].block_number))
        if header is not None and header.block_hash == known[middle].block_hash:
            found = middle
        else:
            above = middle + 1
    return known[found] if found < len(known) else None


def _reaches(known: Sequence[Block], start_block: int, head: BlockHeader) -> bool:
    """Return whether the blocks that are kept go down to the first: then all of it may go."""
    return (
        bool(known) and known[-1].block_number == start_block
    ) or head.block_number < start_block

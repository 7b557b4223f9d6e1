"""Reorgs: unwind the tables to the last block that the chain still has."""

from collections.abc import Sequence

from foretell.chain.reader import Reader
from foretell.chain.rpc_types import BlockHeader
from foretell.domain.errors.chain import ChainInconsistent, ReorgTooDeep
from foretell.indexer.context import IndexerContext
from foretell.store.database import Transaction
from foretell.store.index.blocks import TOPIC, Block, hold_last_block, load_blocks_down
from foretell.store.index.unwind import unwind


async def is_on_chain(reader: Reader, block: Block, head: BlockHeader) -> bool:
    """Return whether the chain with this head has the block."""
    if head.block_number <= block.block_number:
        return head.block_hash == block.block_hash
    header = await reader.header(hex(block.block_number))
    return header is not None and header.block_hash == block.block_hash


async def check_alone(tx: Transaction, last: Block | None) -> None:
    """Refuse with ChainInconsistent unless this is still the newest block; it stays so until the commit."""
    if await hold_last_block(tx) != last:
        raise ChainInconsistent("another indexer writes these tables; run only one")


async def unwind_to_ancestor(
    context: IndexerContext, last: Block, head: BlockHeader
) -> Block | None:
    """Unwind every table to the common ancestor and return it, or None when nothing is left.

    Raises ReorgTooDeep when the ancestor is below the blocks that are kept, and ChainInconsistent when another
    indexer has written the tables since `last` was read.
    """
    async with context.database.reading() as tx:
        kept = await load_blocks_down(tx, last.block_number, context.reorg_blocks_max + 1)
    known = [block for block in kept if block.block_number <= head.block_number]
    ancestor = await find_ancestor(context.reader, known)
    if ancestor is None and not _reaches(kept, context.start_block):
        raise ReorgTooDeep(last.block_number, context.reorg_blocks_max)
    bottom = context.start_block - 1 if ancestor is None else ancestor.block_number
    async with context.database.writing() as tx:
        await check_alone(tx, last)
        await unwind(tx, bottom)
        await tx.announce(TOPIC)
    return ancestor


async def find_ancestor(reader: Reader, known: Sequence[Block]) -> Block | None:
    """Return the highest of these blocks, given highest first, that the chain has.

    All blocks below one that is on the chain are on it too, so a binary search finds the highest.
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


def _reaches(kept: Sequence[Block], start_block: int) -> bool:
    """Return whether the kept blocks reach the first one: then all of them may be unwound.

    A head below the first one is no reason: a node that starts from nothing names one, and years would be read again.
    """
    return bool(kept) and kept[-1].block_number == start_block

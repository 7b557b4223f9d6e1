"""Indexed blocks, as far back as a reorg may reach; written by the indexer."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activity_roles import ALL_ROLES
from foretell.store.index.lock_waits import hold_lock
from foretell.store.tables import activities, blocks, index_unwinds

TOPIC: Final = "chain"
BEFORE_ALL_BLOCKS: Final = -1
"""A height below every block: what changed since then is everything."""

_ONE_ROW: Final = 1
_LOCK: Final = 0x626C6F63


class Block(NamedTuple):
    """A block of the chain, with the hash of its parent."""

    block_number: int
    block_hash: Bytes32
    parent_hash: Bytes32
    timestamp_s: int


async def record_blocks(tx: Transaction, indexed: Sequence[Block]) -> None:
    """Store blocks whose logs are stored in the same transaction, and announce them."""
    await tx.insert_rows(blocks, indexed)
    await tx.announce(TOPIC)


async def prune_blocks(tx: Transaction, below_number: int) -> None:
    """Delete blocks that no reorg can reach."""
    await tx.execute(blocks.delete().where(blocks.c.block_number < below_number))


async def count_unwind(tx: Transaction) -> None:
    """Count that the tables are taken back; the same blocks may come again with other rows."""
    await tx.insert_new(index_unwinds, id=_ONE_ROW, times=0)
    await tx.execute(index_unwinds.update().values(times=index_unwinds.c.times + 1))


async def load_unwinds(tx: Transaction) -> int:
    """Return how often the tables were taken back."""
    return await tx.scalar(sa.select(index_unwinds.c.times)) or 0


async def load_last_block(tx: Transaction) -> Block | None:
    """Return the newest indexed block; the tables contain everything up to it."""
    row = await tx.first(sa.select(blocks).order_by(blocks.c.block_number.desc()).limit(1))
    return None if row is None else Block._make(row)


async def hold_last_block(tx: Transaction) -> Block | None:
    """Return the newest indexed block; no other indexer writes blocks or takes them back until the commit."""
    await hold_lock(tx, _LOCK)
    return await load_last_block(tx)


async def load_block_ago(tx: Transaction, ago_s: int) -> int | None:
    """Return a block that was mined at least so long before the newest one: that of the last activity by then.

    Before there was any, about which block was the last one then, by the pace of the blocks that are kept, maybe below
    the first one; None without two of them that differ in time.
    """
    last = await load_last_block(tx)
    if last is None:
        return None
    numbers = []
    for role in ALL_ROLES:
        then = activities.c.timestamp_s <= last.timestamp_s - ago_s
        of_role = sa.select(activities.c.block_number).where(activities.c.role == role, then)
        numbers.append(await tx.scalar(of_role.order_by(activities.c.timestamp_s.desc()).limit(1)))
    known = [number for number in numbers if number is not None]
    return max(known) if known else await _estimate_block(tx, last, ago_s)


async def _estimate_block(tx: Transaction, last: Block, ago_s: int) -> int | None:
    first = await tx.first(sa.select(blocks).order_by(blocks.c.block_number).limit(1))
    if first is None or last.timestamp_s <= first.timestamp_s:
        return None
    mined, passed_s = last.block_number - first.block_number, last.timestamp_s - first.timestamp_s
    return last.block_number - int(ago_s * mined // passed_s)


async def load_block_hash(tx: Transaction, block_number: int) -> Bytes32 | None:
    """Return the hash of the block at this height, or None when it is not indexed or pruned."""
    number = blocks.c.block_number
    known: Bytes32 | None = await tx.scalar(
        sa.select(blocks.c.block_hash).where(number == block_number)
    )
    return known


async def load_blocks_down(tx: Transaction, from_number: int, limit: int) -> Sequence[Block]:
    """Return blocks from this height downwards, the highest first."""
    rows = await tx.all(
        sa.select(blocks)
        .where(blocks.c.block_number <= from_number)
        .order_by(blocks.c.block_number.desc())
        .limit(limit)
    )
    return [Block._make(row) for row in rows]

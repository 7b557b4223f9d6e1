"""How far the tables are behind the chain."""

from typing import NamedTuple

from foretell.indexer.following import fetch_head
from foretell.indexer.services import IndexerServices
from foretell.store.blocks import Block, load_last_block
from foretell.store.database import Database


class Lag(NamedTuple):
    """The newest indexed block, and what the node has beyond it.

    `head_age_s` is how old the node's own head is: a node that stands still is not behind itself.
    """

    last: Block | None
    head_number: int
    behind_blocks: int
    head_age_s: int


async def last_indexed(database: Database) -> Block | None:
    """Return the block that the tables are of: its number, hash and time."""
    async with database.reading() as tx:
        return await load_last_block(tx)


async def fetch_lag(services: IndexerServices, now_s: int) -> Lag:
    """Return how far the tables are behind the node, and how old the node's head is."""
    last = await last_indexed(services.database)
    head = await fetch_head(services)
    indexed = services.start_block - 1 if last is None else last.block_number
    return Lag(
        last,
        head.block_number,
        max(0, head.block_number - indexed),
        max(0, now_s - head.timestamp_s),
    )

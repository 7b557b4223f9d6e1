"""The rows of the tables that a feed has not compared yet.

An engine knows the last block that it has observed. Tables that were taken back, or restored, may reach the same block
again with other rows: wallets are read when they are asked for, as of the block that is the newest then. So all rows
are compared at a process's first look, whenever the tables were taken back, and after they have ended below that block.
"""

from typing import Final, NamedTuple

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.index.blocks import (
    BEFORE_ALL_BLOCKS,
    Block,
    load_block_hash,
    load_last_block,
    load_unwinds,
)

UNKNOWN: Final = -1
"""How often tables were taken back of which nothing was seen."""


class TablesEnd(NamedTuple):
    """The newest indexed block, from which block on rows are new, and how often the tables were taken back."""

    last: Block
    since: int
    is_on_chain: bool
    """Whether the tables have the observed block."""
    unwinds: int


class SeenTables:
    """Which rows of the tables a feed has not compared yet; `unwinds` is what it has seen of them before."""

    def __init__(self, unwinds: int = UNKNOWN) -> None:
        self._unwinds = unwinds

    async def find_end(
        self, tx: Transaction, observed_block: int, observed_hash: Bytes32
    ) -> TablesEnd | None:
        """Return what to read, None where the tables end below the observed block.

        Such tables are behind, because they are new or restored or because a reorg has been unwound: what they lack is
        not gone, so nothing is read until they have reached it.
        """
        last = await load_last_block(tx)
        if last is None or last.block_number < observed_block:
            self._unwinds = UNKNOWN
            return None
        unwinds = await load_unwinds(tx)
        is_on_chain = await load_block_hash(tx, observed_block) == observed_hash
        is_known = is_on_chain and unwinds == self._unwinds
        return TablesEnd(
            last, observed_block if is_known else BEFORE_ALL_BLOCKS, is_on_chain, unwinds
        )

    def note(self, end: TablesEnd) -> None:
        """Note that the rows were compared."""
        self._unwinds = end.unwinds

"""Dependencies and limits of the indexer."""

from dataclasses import dataclass
from typing import Final

from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.head_clock import HeadClock
from foretell.indexer.wallet_reader import WalletReader
from foretell.store.database import Database

REORG_BLOCKS_MAX: Final = 256
BLOCKS_PER_RANGE_MAX: Final = 200
POLL_INTERVAL_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class IndexerContext:
    """The chain that is read, the tables that are written, and the limits of both.

    `reorg_blocks_max` is the depth that a reorg may reach: this many blocks are kept, and a chain
    that changed below them is refused. `blocks_per_range_max` bounds what one transaction writes.
    `wallets` reads what wallets held before the first block; None is for a collateral without such a history.
    A head that stands still for `head_still_s` is logged; None is for a chain that has no blocks while nothing happens.
    `head_clock` compares the times of new heads with the clock; None is for a chain whose times are chosen.
    """

    database: Database
    reader: Reader
    logs: LogReader
    contracts: IndexedContracts
    start_block: int
    reorg_blocks_max: int = REORG_BLOCKS_MAX
    blocks_per_range_max: int = BLOCKS_PER_RANGE_MAX
    poll_interval_s: float = POLL_INTERVAL_S
    head_still_s: float | None = None
    head_clock: HeadClock | None = None
    wallets: WalletReader | None = None

"""The verification of the index: the chain's logs again, and every figure compared."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.chain import ChainInconsistent, NothingIndexed
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.comparison import compare_all
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.fetched_logs import fetch_times
from foretell.reconciliation.first_holdings import fetch_held
from foretell.reconciliation.recount import Recount, contracts_of
from foretell.reconciliation.traded_matches import find_missing
from foretell.store.database import Database
from foretell.store.index.wallet_readings import TO_READ_AGAIN
from foretell.store.queries.index_tables import IndexedBlock, load_indexed_block, load_page
from foretell.store.spill import ROWS_HELD_MAX, SpillFile
from foretell.store.tables import (
    listing_cursors,
    market_totals,
    ranking_cursors,
    ranking_marks,
    wallet_readings,
)

CATCH_UPS_MAX: Final = 100
"""An index that goes on meanwhile is followed; each time it has fewer blocks more."""
ROUND_LOOKS_MAX: Final = 5
ROUND_PAUSE_S: Final = 2.0
"""A round that brings totals or marks to another minute may be under way: it ends within some more looks."""
OF_ROUNDS: Final = frozenset(
    table.name for table in (market_totals, ranking_marks, ranking_cursors, listing_cursors)
)


def _unknown_ms() -> int:
    """Return the time of a caller that has no clock, at which no block is newer than a cursor."""
    return 0


async def verify_data(
    database: Database,
    rpc: Rpc,
    deployment: Deployment,
    *,
    now_ms: Callable[[], int] = _unknown_ms,
    rows_held_max: int = ROWS_HELD_MAX,
) -> DataReport:
    """Compare the tables of the index, all of one block, with what the node's logs up to it lead to.

    Wallets that were read from the chain are compared with the chain at that block. At most `rows_held_max`
    figures are held in memory at once, and one page of a table; the rest is in temporary files. A chain's blocks may
    be ahead of the clock of the exchange: their times count up to `now_ms`, and not at all without it.

    Raises ChainInconsistent when the node has another block there, or logs that cannot be, and RpcRefused when
    it no longer has the state of that block.
    """
    hash_by_block: dict[int, Bytes32] = {}
    looks_at_round = 0
    with SpillFile(rows_held_max) as spill:
        recount = Recount(rpc, deployment, ChainFigures(contracts_of(deployment), spill))
        for _ in range(CATCH_UPS_MAX):
            last = await _indexed_block(database)
            seen = hash_by_block.setdefault(last.block_number, Bytes32(last.block_hash))
            if seen != last.block_hash:
                raise ChainInconsistent(f"block {last.block_number} was replaced; verify again")
            await recount.count_to(last.block_number)
            await _set_held(database, rpc, recount.figures, last)
            report = await _compared(database, recount.figures, last, now_ms() // 1_000)
            if report is not None:
                if await find_missing(recount.figures, rpc, last.block_number):
                    continue
                if report.differing & OF_ROUNDS and looks_at_round < ROUND_LOOKS_MAX:
                    looks_at_round += 1
                    await asyncio.sleep(ROUND_PAUSE_S)
                    continue
                await fetch_times(rpc, hash_by_block)
                return report
    raise ChainInconsistent(f"the index was not at one block in {CATCH_UPS_MAX} looks")


async def _indexed_block(database: Database) -> IndexedBlock:
    async with database.reading() as tx:
        last = await load_indexed_block(tx)
    if last is None:
        raise NothingIndexed
    return last


async def _set_held(
    database: Database, rpc: Rpc, figures: ChainFigures, last: IndexedBlock
) -> None:
    """Set what the wallets hold that were read from the chain, as it says at the last block."""
    page: Sequence[sa.Row[Any]] = ()
    while True:
        async with database.reading() as tx:
            page = await load_page(tx, wallet_readings, page[-1] if page else None)
        if not page:
            return
        wallets = [Address(row.wallet) for row in page if row.block_number != TO_READ_AGAIN]
        held = await fetch_held(rpc, figures.contracts, wallets, Bytes32(last.block_hash))
        for wallet, first in held.items():
            figures.set_held(wallet, first.units, first.allowances)


async def _compared(
    database: Database, figures: ChainFigures, last: IndexedBlock, now_s: int
) -> DataReport | None:
    """Return the comparison, or None when the index has gone on."""
    report = DataReport(last.block_number, last.block_hash, now_s)
    async with database.reading() as tx:
        if await load_indexed_block(tx) != last:
            return None
        await compare_all(figures, tx, report)
    return report

"""Reads leave no cycles of objects behind: a search for such garbage delays whatever is read meanwhile."""

import gc
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from tests.store.queries.grown import Grown

from foretell.bench.rigs.reads.history import History, HistoryPlan
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database, Transaction
from foretell.store.queries.exports import (
    LEDGER_BEGIN,
    POSITIONS_BEGIN,
    load_changes_after,
    load_positions_after,
    load_trades_after,
)
from foretell.store.queries.games import load_sports
from foretell.store.queries.leaderboards import RankingScope, load_wins
from foretell.store.queries.solvency import FIRST, load_outstanding

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once

AFTER_LARGE_TRADES: Final = (1, 0, 99)
"""The large trades of the short histories are not of the generated ones, and have no fills."""
WHALE: Final = Address(History(HistoryPlan(2, wallets=100, markets=20)).names.whale)
READS_COUNTED: Final = 10
OBJECTS_PER_READ_MAX: Final = 20
"""Those of a transaction; a query that is built for one read leaves more than a hundred."""
Read = Callable[[Transaction], Awaitable[Any]]
READS: Final[dict[str, Read]] = {
    "trades of an export": lambda tx: load_trades_after(tx, WHALE, AFTER_LARGE_TRADES, 10),
    "positions of an export": lambda tx: load_positions_after(tx, WHALE, POSITIONS_BEGIN, 10),
    "ledger of an export": lambda tx: load_changes_after(tx, WHALE, LEDGER_BEGIN, 10),
    "conditions of a report": lambda tx: load_outstanding(tx, None, FIRST, 10),
    "wins": lambda tx: load_wins(tx, RankingScope(Period.ALL, None), limit=10, offset=0),
    "sports": lambda tx: load_sports(tx, 10),
}


async def cyclic_objects(database: Database, read: Read) -> int:
    """Return how many objects some reads leave in cycles, once the query is known."""

    async def repeat(times: int) -> None:
        for _ in range(times):
            async with database.reading() as tx:
                assert await read(tx)

    await repeat(READS_COUNTED)
    gc.collect()
    gc.disable()
    try:
        await repeat(READS_COUNTED)
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
async def test_a_read_leaves_no_cycles_on_sqlite(grown: tuple[Grown, Grown], read: Read) -> None:
    assert await cyclic_objects(grown[0].database, read) <= OBJECTS_PER_READ_MAX * READS_COUNTED


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
async def test_a_read_leaves_no_cycles_on_postgres(on_postgres: Database, read: Read) -> None:
    assert await cyclic_objects(on_postgres, read) <= OBJECTS_PER_READ_MAX * READS_COUNTED

"""Sums by wallet that a version before generations has kept: read, continued, unwound and rebuilt after an upgrade."""

import itertools
import json
import lzma
from pathlib import Path
from typing import Any, Final

import alembic.command
import pytest
import sqlalchemy as sa
from tests.compatibility.sums_history import (
    HEAVY_FROM,
    read_sums,
    write_history,
    write_trades,
)
from tests.rigs.read_apis import keep_rankings
from tests.rigs.values import NOW_MS, NOW_S
from tests.store.live_sums import dump_sums, rebuild
from tests.store.test_migrations import empty_url

from foretell.store.database import Database
from foretell.store.index.generation_rows import BY_PERIOD
from foretell.store.index.trading_totals import tables_of
from foretell.store.index.unwind import unwind
from foretell.store.migrations import configuration, upgrade
from foretell.store.tables import traded_volumes

__all__ = ["empty_url"]

pytestmark = pytest.mark.anyio

WRITTEN: Final[Any] = json.loads(
    lzma.decompress((Path(__file__).parent / "670d8ca4" / "sums.json.xz").read_bytes())
)
"""The revision, the rows of all tables, and what that version read."""
SUMS: Final = {each.name for each in (*BY_PERIOD, *tables_of(0).all)} - {traded_volumes.name}
"""All but those that a later version keeps."""
REORG_BLOCK: Final = 250
"""Amid those that the older version's last round has added."""
LATER_BLOCK: Final = 1_000


@pytest.fixture(autouse=True)
def heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count as many wallets as many as the older version did."""
    monkeypatch.setattr("foretell.store.index.rankings.parts.HEAVY_FROM", HEAVY_FROM)


def write_older(connection: sa.Connection) -> None:
    """Create the older schema with the older rows."""
    alembic.command.upgrade(configuration(connection), WRITTEN["revision"])
    schema = sa.MetaData()
    schema.reflect(connection)
    for table in schema.sorted_tables:
        if found := WRITTEN["tables"].get(table.name):
            rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
            connection.execute(table.insert(), rows)


async def load_table(database: Database, name: str) -> list[Any]:
    """Return the rows of a table as the older version had them, in any order."""
    columns = WRITTEN["tables"][name]["columns"]
    async with database.reading() as tx:
        rows = await tx.all(sa.select(*map(sa.column, columns)).select_from(sa.table(name)))
    return sorted(map(list, rows))


async def test_sums_of_before_generations_are_read_and_continued_exactly(empty_url: str) -> None:
    assert WRITTEN["tables"].keys() >= SUMS, "it kept each of the sums"
    async with Database(empty_url) as database:
        await database.run_sync(write_older)
        await upgrade(database)
        assert await read_sums(database) == WRITTEN["read"]
        for name in SUMS:
            assert await load_table(database, name) == sorted(WRITTEN["tables"][name]["rows"])

        await keep_rankings(database)
        assert await read_sums(database) != WRITTEN["read"], "a round takes on the last trades"
        await assert_exact(database)


async def test_sums_of_before_generations_follow_later_trades_and_a_reorg(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.run_sync(write_older)
        await upgrade(database)
        await write_trades(database, itertools.count(LATER_BLOCK), 4, NOW_S + 1)
        await keep_rankings(database)
        async with database.writing() as tx:
            await unwind(tx, REORG_BLOCK)
        await write_trades(database, itertools.count(LATER_BLOCK), 7, NOW_S + 2)
        await keep_rankings(database)
        await assert_exact(database)


async def assert_exact(database: Database) -> None:
    """Compare all sums with those that a rebuild computes from the trades and positions."""
    followed, read = await dump_sums(database), await read_sums(database)
    assert all(followed.values())
    await rebuild(database, NOW_MS)
    await keep_rankings(database)
    assert await dump_sums(database) == followed
    assert await read_sums(database) == read


async def test_the_same_history_gives_the_sums_of_before_generations(
    fresh_database: Database,
) -> None:
    await write_history(fresh_database)
    assert await read_sums(fresh_database) == WRITTEN["read"]

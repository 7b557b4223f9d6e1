"""The tables' process with PostgreSQL, for its tables and for the journal that it reads."""

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from tests.app.tables_process.rig import QUICK, SMALL, a_tables_rig
from tests.rigs.journals import PostgresJournals, query
from tests.rigs.postgres import PostgresServer

from foretell.app.tables_process.client import TablesLimits
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

LEASE_S = 60.0
DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name <> 'foretell journal'
AND pid <> pg_backend_pid()
"""


@pytest.fixture
def copied(empty_database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_database, tmp_path / "empty.db"))


@pytest.fixture
async def database(journal_url: str, postgres: PostgresServer) -> Database:
    await asyncio.to_thread(postgres.empty_database)
    return Database(journal_url)


@pytest.mark.parametrize("limits", [QUICK, SMALL], ids=["fed again", "from the journal"])
async def test_a_process_that_is_killed_at_any_time_loses_and_doubles_nothing(
    journal_url: str, database: Database, copied: Path, limits: TablesLimits
) -> None:
    rng = random.Random(1)
    journal = PostgresJournals(journal_url, LEASE_S).open("trading")
    async with database, a_tables_rig(journal, database, copied, limits) as rig:
        await rig.open()
        for _ in range(3):
            trading = asyncio.create_task(rig.trade(100))
            await asyncio.sleep(rng.uniform(0, 0.4))
            rig.kill()
            await trading
        await rig.check()


async def test_tables_survive_a_database_that_drops_every_connection(
    journal_url: str, database: Database, copied: Path
) -> None:
    journal = PostgresJournals(journal_url, LEASE_S).open("trading")
    async with database, a_tables_rig(journal, database, copied) as rig:
        await rig.open()
        for _ in range(5):
            trading = asyncio.create_task(rig.trade(40))
            await asyncio.sleep(0.1)
            query(journal_url, DISCONNECT)
            await trading
        await rig.check()


async def test_tables_wait_for_rows_that_another_session_locks(
    journal_url: str, database: Database, copied: Path
) -> None:
    journal = PostgresJournals(journal_url, LEASE_S).open("trading")
    async with database, a_tables_rig(journal, database, copied) as rig:
        await rig.open()
        await rig.written()
        locking = asyncio.to_thread(
            query, journal_url, "SELECT pg_sleep(1) FROM (SELECT * FROM projections FOR UPDATE) p"
        )
        locked = asyncio.create_task(locking)
        await rig.trade(100)
        await locked
        await rig.check()

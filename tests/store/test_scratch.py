import asyncio
import threading
from collections.abc import Collection

import pytest
import sqlalchemy as sa

from foretell.domain.errors.storage import StoreUnavailable
from foretell.store.database import Database
from foretell.store.scratch import analyze, fetch_bare, scratch_store

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0


async def use(database: Database) -> None:
    async with database.writing() as tx:
        await tx.execute(sa.text("CREATE TABLE things (name TEXT)"))
        await tx.execute(sa.text("INSERT INTO things VALUES ('a'), ('b')"))
    await analyze(database)
    assert (
        await fetch_bare(database, "SELECT * FROM things WHERE name <> :name", {"name": "a"}) == 1
    )


async def wait_for_others(known: Collection[threading.Thread]) -> None:
    """Wait for threads of aiosqlite: one whose connection failed reports its end to a loop that must be open."""
    for thread in set(threading.enumerate()).difference(known):
        if not thread.name.startswith("asyncio_"):  # those of `to_thread` never end
            await asyncio.to_thread(thread.join, DEADLINE_S)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_scratch_database_is_used_and_deleted(kind: str, postgres_url: str) -> None:
    known = threading.enumerate()
    server = postgres_url if kind == "postgresql" else None
    async with scratch_store(server, "foretell_scratch") as database:
        await use(database)
        url = database.url
    async with Database(url) as gone:
        with pytest.raises((StoreUnavailable, sa.exc.DBAPIError)):
            await use(gone)
    await wait_for_others(known)

"""The metric of SQLite's memory."""

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from prometheus_client import generate_latest

from foretell.store.database import Database
from foretell.store.sqlite import memory
from foretell.store.sqlite.memory import sqlite_bytes
from foretell.store.tables import requests

PAGE_BYTES = 4_096
PAGES = 1_000


@pytest.fixture
def looked_up() -> Iterator[None]:
    """The function of the library is looked up in a test, and again in the next."""
    memory._memory_used.cache_clear()
    yield
    memory._memory_used.cache_clear()


def test_pages_of_a_connection_count_until_it_closes(tmp_path: Path) -> None:
    before = sqlite_bytes()
    connection = sqlite3.connect(tmp_path / "pages.db")
    connection.execute(f"PRAGMA cache_size=-{PAGES * PAGE_BYTES // 1024}")
    connection.execute("CREATE TABLE t (x BLOB)")
    connection.execute("INSERT INTO t VALUES (zeroblob(?))", [PAGES // 2 * PAGE_BYTES])
    grown = sqlite_bytes() - before
    connection.close()
    assert PAGES // 2 * PAGE_BYTES <= grown <= PAGES * PAGE_BYTES * 1.2
    assert sqlite_bytes() - before < PAGES // 2 * PAGE_BYTES


@pytest.mark.anyio
async def test_a_process_with_a_database_of_sqlite_shows_its_memory(
    fresh_database: Database,
) -> None:
    async with fresh_database.reading() as tx:
        assert not await tx.all(sa.select(requests))
    (line,) = [
        line
        for line in generate_latest().decode().splitlines()
        if line.startswith("foretell_sqlite_memory_bytes ")
    ]
    assert float(line.split()[1]) > 0


@pytest.mark.usefixtures("looked_up")
def test_a_library_that_does_not_say_so_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER", "_bisect")
    assert math.isnan(sqlite_bytes())

"""A history of some fills, and one of ten times as many."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.rigs.postgres import PostgresServer
from tests.store.queries.grown import FILLS, Grown

from foretell.bench.rigs.reads.history import History, HistoryPlan
from foretell.store.database import Database
from foretell.store.scratch import analyze


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a hundred rows many."""
    monkeypatch.setattr("foretell.store.index.activity_pages.RARE_ROWS_MAX", 100)


@pytest.fixture(scope="session")
async def grown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Grown, Grown]]:
    """The two histories, on SQLite."""
    folder = tmp_path_factory.mktemp("grown")
    both = Grown(folder / "small.db", FILLS[0]), Grown(folder / "large.db", FILLS[1])
    for each in both:
        await each.fill()
    yield both
    for each in both:
        await each.database.close()


@pytest.fixture(scope="module")
async def on_postgres(postgres: PostgresServer) -> AsyncIterator[Database]:
    """The long history on PostgreSQL, whose planner has counted its rows."""
    await asyncio.to_thread(postgres.empty_database)
    async with Database(postgres.database_url) as database:
        history = History(HistoryPlan(FILLS[1], wallets=100, markets=20))
        await history.write(database)
        await history.write_sums(database)
        await analyze(database)
        yield database

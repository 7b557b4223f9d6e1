"""Waits of indexing and of a rebuild for each other: connections of PostgreSQL that give up a lock after a while."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import asyncpg
import pytest
import sqlalchemy as sa
from tests.rigs.postgres import PostgresServer
from tests.rigs.values import NOW_MS
from tests.store.index.test_rebuild import Killed, Watched, some_sums, spoil
from tests.store.live_sums import dump_sums

from foretell.indexer.rebuild import RebuildContext, rebuild_sums, rebuild_supplies
from foretell.store.database import Database
from foretell.store.index.generation_rows import remove_unread
from foretell.store.index.generations import begin_next, hold_live, load_live

pytestmark = pytest.mark.anyio

GIVEN_UP_AFTER_MS: Final = 500
GIVEN_UP: Final = "due to lock timeout"
STEP: Final = 3
"""A step in which an unfinished rebuild has written rows."""
ROWS_MAX: Final = 2
UNREAD_ROWS: Final = sa.text("SELECT count(*) FROM odd_traded_markets")


@pytest.fixture
def impatient_url(postgres: PostgresServer) -> Iterator[str]:
    """A database whose new connections give up a lock."""
    postgres.empty_database()
    url = postgres.database_url
    name = sa.make_url(url).database
    _alter(url, f'ALTER DATABASE "{name}" SET lock_timeout = {GIVEN_UP_AFTER_MS}')
    yield url
    _alter(url, f'ALTER DATABASE "{name}" RESET lock_timeout')


def _alter(url: str, statement: str) -> None:
    asyncio.run(_execute(url, statement))


async def _execute(url: str, statement: str) -> None:
    plain = sa.make_url(url).set(drivername="postgresql")
    connection = await asyncpg.connect(plain.render_as_string(hide_password=False))
    await connection.execute(statement)
    await connection.close()


@pytest.fixture
async def indexer(impatient_url: str) -> AsyncIterator[Database]:
    async with Database(impatient_url) as database:
        yield database


@pytest.fixture
async def rebuilder(impatient_url: str) -> AsyncIterator[Database]:
    async with Database(impatient_url) as database:
        yield database


async def leave_unfinished(rebuilder: Database) -> None:
    """Leave rows that nobody reads."""

    async def end(step: int) -> None:
        async with rebuilder.reading() as tx:
            if step >= STEP and await tx.scalar(UNREAD_ROWS):
                raise Killed

    context = RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX, pacing=Watched(end))
    with pytest.raises(Killed):
        await rebuild_sums(context)
    async with rebuilder.writing() as tx:
        await begin_next(tx)


async def test_indexing_does_not_wait_for_a_removal(indexer: Database, rebuilder: Database) -> None:
    await some_sums(indexer)
    await leave_unfinished(rebuilder)
    async with rebuilder.writing() as removing:
        assert await remove_unread(removing, 1) == 1
        async with indexer.writing() as indexing:
            assert await hold_live(indexing) == 0


async def test_a_removal_does_not_wait_for_indexing(indexer: Database, rebuilder: Database) -> None:
    await some_sums(indexer)
    await leave_unfinished(rebuilder)
    async with indexer.writing() as indexing:
        await hold_live(indexing)
        async with rebuilder.writing() as removing:
            assert await remove_unread(removing, 1) == 1


async def test_a_rebuild_waits_for_indexing_at_its_swap_alone(
    indexer: Database, rebuilder: Database
) -> None:
    await some_sums(indexer)
    await leave_unfinished(rebuilder)
    spoiled, lines = await spoil(indexer), list[str]()
    indexing = contextlib.AsyncExitStack()

    async def hold(step: int) -> None:
        if step == 1:
            await hold_live(await indexing.enter_async_context(indexer.writing()))

    context = RebuildContext(
        rebuilder, lambda: NOW_MS, ROWS_MAX, report=lines.append, pacing=Watched(hold)
    )
    async with indexing:
        # It waits before it reads what has been indexed, not only when it writes the row.
        with pytest.raises(sa.exc.DBAPIError, match=rf"(?s){GIVEN_UP}.*FOR UPDATE"):
            await rebuild_sums(context)
    assert [line.partition(" ")[0] for line in lines] == ["removed", "round"]
    assert await dump_sums(indexer) == spoiled

    rebuilt = await rebuild_sums(RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX))
    async with indexer.reading() as tx:
        assert await load_live(tx) == rebuilt.generation


async def test_supplies_are_not_added_up_beside_indexing(
    indexer: Database, rebuilder: Database
) -> None:
    """A block that is being written changes balances that the rebuild does not see."""
    async with rebuilder.writing() as beginning:
        await begin_next(beginning)
    async with indexer.writing() as indexing:
        await hold_live(indexing)
        with pytest.raises(sa.exc.DBAPIError, match=GIVEN_UP):
            await rebuild_supplies(RebuildContext(rebuilder, lambda: NOW_MS))
    assert await rebuild_supplies(RebuildContext(rebuilder, lambda: NOW_MS)) == 0


async def test_a_rebuild_does_not_begin_beside_a_removal_that_would_take_its_rows(
    indexer: Database, rebuilder: Database
) -> None:
    """The lock of a session ends with its connection, even if its process goes on."""
    await some_sums(indexer)
    await rebuild_sums(RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX))
    async with indexer.writing() as removing:
        await remove_unread(removing, 1)
        with pytest.raises(sa.exc.DBAPIError, match=GIVEN_UP):
            async with rebuilder.writing() as beginning:
                await begin_next(beginning)

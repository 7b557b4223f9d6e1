"""Reads of public routes, on SQLite and on PostgreSQL: apart from all others, and ended at a deadline."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from tests.rigs.postgres import PostgresServer

from foretell.domain.errors.storage import ReadTooSlow, StoreUnavailable
from foretell.store.database import READERS_MAX, Database
from foretell.store.deadlines import OVERRUN_MAX_S, Deadline, ended_at
from foretell.store.public_reads.places import (
    UNNAMED,
    PublicReadLimits,
    ReadKind,
    client_name,
    context_of,
)
from foretell.store.tables import projections

pytestmark = pytest.mark.anyio

T = TypeVar("T")
DEADLINE_S = 0.3
LONG_S = 6.0
ENDED_WITHIN_S = 60.0
KEY_S = 3.0
"""The deadline of reads of keys: on a busy machine, too, a quick one ends before it."""
TRIES_MAX = 10
FOR_LONG = {
    "postgresql": "SELECT pg_sleep(600)",
    "sqlite": """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000000000)
SELECT count(*) FROM numbers
""",
}
"""A read that takes minutes, by dialect."""


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    limits = PublicReadLimits(
        read_s=DEADLINE_S, sum_s=2 * DEADLINE_S, key_s=KEY_S, write_s=DEADLINE_S
    )
    async with Database(each_database_url, limits) as database:
        yield database


def in_request_of(client: str | None, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    return asyncio.create_task(work, context=context_of(client))


async def read_for_long(database: Database, kind: ReadKind = ReadKind.LISTING) -> float:
    """Return how long a read took that would take minutes; the database must end it.

    A read whose deadline came before its statement, as while a connection is made on a busy machine,
    is refused by us, and is tried again.
    """
    for _ in range(TRIES_MAX):
        started_s = time.monotonic()
        with pytest.raises(ReadTooSlow) as refused:
            async with database.public_reading(kind) as tx:
                await tx.scalar(sa.text(FOR_LONG[tx.dialect]))
        if isinstance(refused.value.__cause__, StoreUnavailable):
            return time.monotonic() - started_s
    pytest.fail("the database did not end it")


async def read_often(database: Database) -> None:
    async with database.public_reading() as tx:
        while True:
            await tx.scalar(sa.select(sa.func.count()).select_from(projections))


async def sequence_of(database: Database) -> Any:
    async with database.public_reading(ReadKind.OWN) as tx:
        return await tx.scalar(sa.select(projections.c["sequence"]))


async def test_p1_a_slow_read_is_ended_at_its_deadline(database: Database) -> None:
    assert DEADLINE_S <= await read_for_long(database) < ENDED_WITHIN_S
    assert 2 * DEADLINE_S <= await read_for_long(database, ReadKind.SUM) < ENDED_WITHIN_S
    assert KEY_S <= await read_for_long(database, ReadKind.KEY) < ENDED_WITHIN_S


async def test_p1_many_quick_statements_are_ended_at_the_deadline(database: Database) -> None:
    with pytest.raises(ReadTooSlow):
        await asyncio.wait_for(read_often(database), ENDED_WITHIN_S)
    async with database.public_reading(ReadKind.KEY) as tx:
        assert await tx.scalar(sa.select(1)) == 1


async def test_a_connection_serves_on_after_a_slow_read(database: Database) -> None:
    for _ in range(3):
        await read_for_long(database)
        async with database.public_reading(ReadKind.KEY) as tx:
            assert await tx.scalar(sa.select(1)) == 1


async def read_without_end(database: Database, begun: asyncio.Event) -> None:
    """Read until the caller goes away."""
    async with database.public_reading() as tx:
        begun.set()
        await tx.scalar(sa.text(FOR_LONG[tx.dialect]))


async def test_p1_slow_reads_delay_no_other_transaction(each_database_url: str) -> None:
    """Two clients with slow reads take all places; what trading needs is done meanwhile."""
    limits = PublicReadLimits(read_s=10 * ENDED_WITHIN_S)
    async with Database(each_database_url, limits) as database:
        begun = [asyncio.Event() for _ in range(limits.places)]
        slow = [
            in_request_of(name, read_without_end(database, each))
            for name, each in zip("aabb", begun, strict=True)
        ]
        try:
            async with asyncio.timeout(ENDED_WITHIN_S):
                for each in begun:
                    await each.wait()
            async with database.writing() as tx:
                await tx.execute(projections.insert().values(name="a", sequence=1))
            assert await in_request_of("a", sequence_of(database)) == 1
            for _ in range(2 * READERS_MAX):
                async with database.reading() as tx:
                    assert await tx.scalar(sa.select(projections.c["sequence"])) == 1
            assert [task.done() for task in slow] == [False] * 4
        finally:
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)


async def test_a_failure_before_the_deadline_keeps_its_name(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail(database)


async def fail(database: Database) -> Any:
    async with database.public_reading() as tx:
        await tx.scalar(sa.select(1))
        raise ZeroDivisionError


async def read_in_request(database: Database) -> None:
    async with database.reading() as tx:
        await tx.scalar(sa.text(FOR_LONG[tx.dialect]))


async def test_a_read_of_a_request_is_ended_at_its_deadline_whatever_opened_it(
    database: Database,
) -> None:
    for _ in range(READERS_MAX + 1):
        with pytest.raises(ReadTooSlow):
            await asyncio.wait_for(in_request_of("a", read_in_request(database)), ENDED_WITHIN_S)
    async with database.reading() as tx:
        assert await tx.scalar(sa.select(1)) == 1


async def write_in_request(database: Database, *, is_slow: bool) -> None:
    async with database.writing() as tx:
        await tx.execute(projections.insert().values(name="a", sequence=1))
        if is_slow:
            await tx.scalar(sa.text(FOR_LONG[tx.dialect]))


async def test_a_write_of_a_request_is_rolled_back_at_its_deadline(database: Database) -> None:
    for _ in range(2):
        writing = in_request_of("a", write_in_request(database, is_slow=True))
        with pytest.raises(StoreUnavailable, match=f"longer than {DEADLINE_S:g} s"):
            await asyncio.wait_for(writing, ENDED_WITHIN_S)
    await write_in_request(database, is_slow=False)  # of a loop, so without a deadline
    async with database.reading() as tx:
        assert await tx.scalar(sa.select(projections.c["sequence"])) == 1


async def test_a_write_of_a_request_waits_for_others_until_its_deadline(
    database: Database, each_database_url: str
) -> None:
    async with Database(each_database_url) as other, other.writing() as tx:
        await tx.execute(projections.insert().values(name="a", sequence=1))
        writing = in_request_of("a", write_in_request(database, is_slow=False))
        with pytest.raises(StoreUnavailable, match=f"longer than {DEADLINE_S:g} s"):
            await asyncio.wait_for(writing, ENDED_WITHIN_S)


async def test_guard_many_rows_of_a_write_are_ended_at_the_deadline(database: Database) -> None:
    """The deadline is looked at before each part of them, not only before the first."""

    async def write() -> None:
        async with database.writing() as tx:
            await asyncio.sleep(2 * DEADLINE_S)
            with pytest.raises(StoreUnavailable):
                await tx.execute(projections.insert(), [{"name": "a", "sequence": 1}])
            with pytest.raises(StoreUnavailable):
                await tx.insert_rows(projections, [("a", 1)])
            await tx.announce("a topic")

    with pytest.raises(StoreUnavailable, match=f"longer than {DEADLINE_S:g} s"):
        await in_request_of("a", write())


async def test_guard_postgresql_ends_a_statement_with_what_is_left_of_the_time(
    postgres: PostgresServer,
) -> None:
    """It had the whole time of the transaction, however late its connection was free."""
    engine = create_async_engine(postgres.database_url)
    deadline = Deadline(LONG_S)
    await asyncio.sleep(LONG_S / 2)
    async with engine.begin() as connection, ended_at(deadline, connection):
        found = await connection.scalar(
            sa.text("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'")
        )
    await engine.dispose()
    assert 0 < int(found) <= 1000 * LONG_S / 2


async def test_guard_postgresql_ends_a_later_statement_with_what_is_left_of_the_time(
    postgres: PostgresServer,
) -> None:
    """Each statement had the whole time of the transaction, so the last one could end in twice that time."""
    setting = sa.text("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'")
    limits = PublicReadLimits(read_s=LONG_S)
    async with Database(postgres.database_url, limits) as database, database.public_reading() as tx:
        for passed_s in (0, LONG_S / 4):
            await asyncio.sleep(passed_s)
            found = int(await tx.scalar(setting))
            assert 0 < found <= 1000 * (LONG_S - passed_s + OVERRUN_MAX_S)


async def test_guard_a_read_whose_caller_goes_away_ends_then(each_database_url: str) -> None:
    """SQLite went on until the deadline, and the caller waited for it."""
    async with Database(
        each_database_url, PublicReadLimits(read_s=10 * ENDED_WITHIN_S)
    ) as database:
        reading = in_request_of("a", read_in_request(database))
        await asyncio.sleep(DEADLINE_S)
        reading.cancel()
        done, _ = await asyncio.wait([reading], timeout=ENDED_WITHIN_S)
        assert done == {reading}
        assert reading.cancelled()
        async with database.reading() as tx:
            assert await tx.scalar(sa.select(1)) == 1


async def test_guard_watches_are_woken_when_the_outcome_of_a_commit_is_not_known(
    database: Database,
) -> None:
    """A commit that does not end in time may take effect later; here one is refused, and wakes them for nothing."""
    watch = await database.watch("a topic")

    async def write(*statements: str) -> None:
        async with database.writing() as tx:
            for statement in statements:
                await tx.execute(sa.text(statement))
            await tx.announce("a topic")
            if not statements:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write()
    assert not await watch.wait(0)
    if database.is_sqlite:
        with pytest.raises(sa.exc.IntegrityError):
            await write(
                "CREATE TABLE owners (id INTEGER PRIMARY KEY)",
                "CREATE TABLE owned (id INTEGER REFERENCES owners DEFERRABLE INITIALLY DEFERRED)",
                "INSERT INTO owned VALUES (1)",
            )
        assert await watch.wait(0)


async def test_a_transaction_of_a_loop_has_no_deadline(database: Database) -> None:
    async with database.writing() as tx:
        await asyncio.sleep(2 * DEADLINE_S)
        await tx.execute(projections.insert().values(name="a", sequence=1))
    async with database.reading() as tx:
        await asyncio.sleep(2 * DEADLINE_S)
        assert await tx.scalar(sa.select(projections.c["sequence"])) == 1


async def test_the_context_of_a_client_is_its_task_alone() -> None:
    seen = [await in_request_of(each, name_of_client()) for each in ("a client", None)]
    assert [*seen, client_name.get()] == ["a client", UNNAMED, ""]


async def name_of_client() -> str:
    return client_name.get()

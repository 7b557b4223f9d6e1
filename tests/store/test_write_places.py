"""Places of requests' writes: who waits for how many writes of others."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Final

import pytest
import sqlalchemy as sa
from typing_extensions import override

from foretell.domain.errors.storage import WritesBusy
from foretell.store.database import POSTGRES_CONNECTIONS_KEPT, Database
from foretell.store.public_reads.places import WaitBounds, answering, in_request
from foretell.store.tables import projections
from foretell.store.write_places import (
    POSTGRES_PLACES,
    SQLITE_PLACES,
    WritePlaceCounts,
    WritePlaces,
    writing_apart,
    writing_for,
)

pytestmark = pytest.mark.anyio

STRANGERS_WRITES = 200
WRITER: Final[ContextVar[str]] = ContextVar("writer", default="")
"""Whose write a task makes."""
PATIENT = WaitBounds(wait_s=60.0)
"""None of these writes is refused on a machine that is busy with other things."""


def counts_of(database: Database) -> WritePlaceCounts:
    return SQLITE_PLACES if database.is_sqlite else POSTGRES_PLACES


class NotedPlaces(WritePlaces):
    """Places that note whose writes get them."""

    def __init__(self, counts: WritePlaceCounts, begun: list[str]) -> None:
        super().__init__(counts, PATIENT)
        self._begun = begun

    @override
    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        async with super().taken():
            if in_request():
                self._begun.append(WRITER.get())
            yield


class Writes:
    """Writes to a database, and whose they were, in the order in which they began.

    A write of a request begins with its place, one of a loop with its connection. The order in
    which they end would be that in which a busy machine runs the processes of the server.
    """

    def __init__(self, database: Database) -> None:
        self.begun: list[str] = []
        self._database = database
        self._numbers = itertools.count()
        counts = counts_of(database)
        database._writes = NotedPlaces(counts, self.begun)
        self.before_max = 2 * (max(counts.accounts, counts.others) + 1)

    async def open_connections(self) -> None:
        """Open as many connections as the writes use: to open one takes as long as many writes."""
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(1 if self._database.is_sqlite else POSTGRES_CONNECTIONS_KEPT):
                await stack.enter_async_context(self._database.writing())

    async def of_client(self, client: str) -> None:
        with answering(client):
            await self.of_loop(client)

    async def of_account(self, account: str, client: str) -> None:
        with answering(client), writing_for(account):
            await self.of_loop(account)

    async def apart(self, account: str) -> None:
        """Write for an account, apart from its other writes."""
        with answering(account), writing_for(account), writing_apart():
            await self.of_loop("apart")

    async def of_loop(self, name: str = "loop") -> None:
        WRITER.set(name)
        async with self._database.writing() as tx:
            if not in_request():
                self.begun.append(name)
            row = {"name": f"{name} {next(self._numbers)}", "sequence": 1}
            await tx.scalar(sa.select(sa.func.count()).select_from(projections))
            await tx.upsert_rows(projections, [tuple(row.values())])

    def before(self, name: str) -> int:
        """Return how many writes began before the one of a name."""
        return self.begun.index(name)


async def test_others_and_loops_wait_for_few_of_a_clients_writes(database: Database) -> None:
    """A finding: one address that asked for challenges held up every write of the process."""
    writes = Writes(database)
    await writes.open_connections()
    strangers = [asyncio.create_task(writes.of_client("stranger")) for _ in range(STRANGERS_WRITES)]
    await asyncio.sleep(0)
    others = [
        asyncio.create_task(each)
        for each in (
            writes.of_client("other"),
            writes.of_account("account", "stranger"),
            writes.of_loop(),
        )
    ]
    await asyncio.gather(*strangers, *others)
    for name in ("other", "account", "loop"):
        assert writes.before(name) <= writes.before_max, name


async def test_an_account_does_not_wait_for_many_strangers(database: Database) -> None:
    writes = Writes(database)
    await writes.open_connections()
    strangers = [
        asyncio.create_task(writes.of_client(f"stranger {number}"))
        for number in range(STRANGERS_WRITES)
    ]
    await asyncio.sleep(0)
    await asyncio.gather(writes.of_account("account", "other"), *strangers)
    assert writes.before("account") <= writes.before_max


async def test_an_account_writes_as_many_at_once_as_it_has_places(database: Database) -> None:
    """A finding: on PostgreSQL an account waited for each of its own commits."""
    most = 1 if database.is_sqlite else 3
    running = running_max = 0
    are_all_there = asyncio.Event()

    async def write() -> None:
        nonlocal running, running_max
        async with database.writing():
            running += 1
            running_max = max(running_max, running)
            if running == most:
                are_all_there.set()
            await are_all_there.wait()
            await asyncio.sleep(0.01)
            running -= 1

    with answering("client"), writing_for("account"):
        await asyncio.gather(*(write() for _ in range(4 * most)))
    assert running_max == most


async def test_a_write_apart_does_not_wait_for_many_of_its_account(database: Database) -> None:
    writes = Writes(database)
    await writes.open_connections()
    own = [
        asyncio.create_task(writes.of_account("account", "client")) for _ in range(STRANGERS_WRITES)
    ]
    await asyncio.sleep(0)
    await asyncio.gather(writes.apart("account"), *own)
    assert writes.before("apart") <= writes.before_max


async def test_a_write_that_fails_gives_its_place_back(database: Database) -> None:
    for _ in range(POSTGRES_PLACES.others + 1):
        with answering("client"), contextlib.suppress(ZeroDivisionError):
            async with database.writing():
                raise ZeroDivisionError
    await Writes(database).of_client("client")


async def test_a_write_without_a_place_in_time_is_refused_and_does_nothing() -> None:
    places = WritePlaces(SQLITE_PLACES, WaitBounds(wait_s=0.05, per_client=1))

    async def take() -> None:
        async with places.taken():
            await asyncio.sleep(0.2)

    with answering("client"):
        taken = [asyncio.create_task(take()) for _ in range(3)]
    outcomes = await asyncio.gather(*taken, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), WritesBusy, WritesBusy]

"""Places of requests' writes: who waits for how many writes of others."""

import asyncio
import contextlib

import pytest
import sqlalchemy as sa

from foretell.domain.errors.storage import WritesBusy
from foretell.store.database import Database
from foretell.store.public_reads.places import WaitBounds, answering
from foretell.store.tables import projections
from foretell.store.write_places import (
    POSTGRES_PLACES,
    SQLITE_PLACES,
    WritePlaces,
    writing_for,
)

pytestmark = pytest.mark.anyio

STRANGERS_WRITES = 200


class Writes:
    """Writes to a database, and whose they were in the order in which they ended."""

    def __init__(self, database: Database) -> None:
        self.ended: list[str] = []
        self._database = database
        most = SQLITE_PLACES if database.is_sqlite else POSTGRES_PLACES
        self.before_max = 2 * (most + 1)

    async def of_client(self, client: str) -> None:
        with answering(client):
            await self.of_loop(client)

    async def of_account(self, account: str, client: str) -> None:
        with answering(client), writing_for(account):
            await self.of_loop(account)

    async def of_loop(self, name: str = "loop") -> None:
        async with self._database.writing() as tx:
            row = {"name": f"{name} {len(self.ended)}", "sequence": 1}
            await tx.scalar(sa.select(sa.func.count()).select_from(projections))
            await tx.upsert_rows(projections, [tuple(row.values())])
        self.ended.append(name)

    def before(self, name: str) -> int:
        """Return how many writes ended before the one of a name."""
        return self.ended.index(name)


async def test_others_and_loops_wait_for_few_of_a_clients_writes(database: Database) -> None:
    """A finding: one address that asked for challenges held up every write of the process."""
    writes = Writes(database)
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
    strangers = [
        asyncio.create_task(writes.of_client(f"stranger {number}"))
        for number in range(STRANGERS_WRITES)
    ]
    await asyncio.sleep(0)
    await asyncio.gather(writes.of_account("account", "other"), *strangers)
    assert writes.before("account") <= writes.before_max


async def test_a_write_that_fails_gives_its_place_back(database: Database) -> None:
    for _ in range(POSTGRES_PLACES + 1):
        with answering("client"), contextlib.suppress(ZeroDivisionError):
            async with database.writing():
                raise ZeroDivisionError
    await Writes(database).of_client("client")


async def test_a_write_without_a_place_in_time_is_refused_and_does_nothing() -> None:
    places = WritePlaces(1, WaitBounds(wait_s=0.05, per_client=1))

    async def take() -> None:
        async with places.taken():
            await asyncio.sleep(0.2)

    with answering("client"):
        taken = [asyncio.create_task(take()) for _ in range(3)]
    outcomes = await asyncio.gather(*taken, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), WritesBusy, WritesBusy]

import pytest
from tests.rigs.values import NOW_MS, an_address

from foretell.store.database import Database
from foretell.store.trading.heartbeats import Beating, load_beatings, record_beating, record_stopped

pytestmark = pytest.mark.anyio

ALICE = Beating("key-of-alice", an_address("alice"), NOW_MS)
BOB = Beating("key-of-bob", an_address("bob"), NOW_MS + 1)


async def load(database: Database) -> list[Beating]:
    async with database.reading() as tx:
        return list(await load_beatings(tx))


async def test_keys_that_beat_are_found_again_in_the_order_in_which_they_began(
    database: Database,
) -> None:
    async with database.writing() as tx:
        await record_beating(tx, BOB)
        await record_beating(tx, ALICE)
    assert await load(database) == [ALICE, BOB]


async def test_a_key_that_begins_again_is_kept_once(database: Database) -> None:
    again = ALICE._replace(started_at_ms=NOW_MS + 5)
    async with database.writing() as tx:
        await record_beating(tx, ALICE)
        await record_beating(tx, again)
    assert await load(database) == [again]


async def test_a_key_that_stopped_is_forgotten(database: Database) -> None:
    async with database.writing() as tx:
        await record_beating(tx, ALICE)
        await record_beating(tx, BOB)
        await record_stopped(tx, ALICE.key_id)
    assert await load(database) == [BOB]

import pytest
from tests.rigs.values import NOW_MS, an_address

from foretell.store.database import Database
from foretell.store.trading.heartbeats import (
    HeartbeatRow,
    load_heartbeats,
    record_heartbeats,
    remove_heartbeats,
)

pytestmark = pytest.mark.anyio

ALICE = HeartbeatRow("key-of-alice", an_address("alice"), NOW_MS)
BOB = HeartbeatRow("key-of-bob", an_address("bob"), NOW_MS + 1)


async def load(database: Database) -> list[HeartbeatRow]:
    async with database.reading() as tx:
        return list(await load_heartbeats(tx))


async def test_keys_with_heartbeats_are_loaded_in_the_order_of_their_start(
    database: Database,
) -> None:
    async with database.writing() as tx:
        await record_heartbeats(tx, BOB)
        await record_heartbeats(tx, ALICE)
    assert await load(database) == [ALICE, BOB]


async def test_a_key_that_starts_again_is_stored_once(database: Database) -> None:
    again = ALICE._replace(started_at_ms=NOW_MS + 5)
    async with database.writing() as tx:
        await record_heartbeats(tx, ALICE)
        await record_heartbeats(tx, again)
    assert await load(database) == [again]


async def test_a_key_that_stopped_is_removed(database: Database) -> None:
    async with database.writing() as tx:
        await record_heartbeats(tx, ALICE)
        await record_heartbeats(tx, BOB)
        await remove_heartbeats(tx, ALICE.key_id)
    assert await load(database) == [BOB]

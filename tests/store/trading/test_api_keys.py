"""API keys: the index of each set of credentials, never the credentials themselves."""

import asyncio

import pytest
import sqlalchemy as sa
from tests.rigs.values import CHAIN_ID, NOW_MS, an_address

from foretell.domain.values.credentials import NONCE_MAX, KeyIndex
from foretell.store.database import Database
from foretell.store.trading.api_keys import (
    ACTIVE,
    REVOKED,
    TOPIC,
    ApiKey,
    load_key,
    load_keys,
    lock_keys,
    record_key,
    revoke_key,
)

pytestmark = pytest.mark.anyio

ALICE, BOB = an_address("alice"), an_address("bob")


async def record(database: Database, key_id: str, index: KeyIndex, now_ms: int = NOW_MS) -> None:
    async with database.writing() as tx:
        await record_key(tx, key_id, index, now_ms)


async def load(database: Database, key_id: str) -> ApiKey | None:
    async with database.reading() as tx:
        return await load_key(tx, key_id)


async def revoke(database: Database, key_id: str, now_ms: int = NOW_MS) -> bool:
    async with database.writing() as tx:
        return await revoke_key(tx, key_id, now_ms)


async def test_an_unknown_key_is_none(database: Database) -> None:
    assert await load(database, "unknown") is None


@pytest.mark.parametrize("nonce", [0, 2**63, NONCE_MAX])
async def test_a_key_is_loaded_as_it_was_stored(database: Database, nonce: int) -> None:
    index = KeyIndex(CHAIN_ID, ALICE, nonce, 3)
    await record(database, "a", index)
    assert await load(database, "a") == ApiKey("a", index, ACTIVE, NOW_MS, None)


async def test_a_revoked_key_stays_stored_and_is_not_active(database: Database) -> None:
    index = KeyIndex(CHAIN_ID, ALICE, 0)
    await record(database, "a", index)
    assert await revoke(database, "a", NOW_MS + 1)
    key = await load(database, "a")
    assert key == ApiKey("a", index, REVOKED, NOW_MS, NOW_MS + 1)
    assert not key.is_active


async def test_a_key_is_revoked_once(database: Database) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    assert await revoke(database, "a", NOW_MS + 1)
    assert not await revoke(database, "a", NOW_MS + 2)
    key = await load(database, "a")
    assert key is not None
    assert key.revoked_at_ms == NOW_MS + 1


async def test_only_the_given_key_is_revoked(database: Database) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    await record(database, "b", KeyIndex(CHAIN_ID, ALICE, 1))
    await revoke(database, "a")
    key = await load(database, "b")
    assert key is not None
    assert key.is_active


async def test_an_unknown_key_is_not_revoked(database: Database) -> None:
    assert not await revoke(database, "unknown")


async def test_a_revocation_wakes_the_watches_on_keys(database: Database) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    watch = await database.watch(TOPIC)
    await revoke(database, "a")
    assert await watch.wait(5)


async def test_the_same_index_has_one_key(database: Database) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    with pytest.raises(sa.exc.IntegrityError):
        await record(database, "b", KeyIndex(CHAIN_ID, ALICE, 0))


@pytest.mark.parametrize(
    "other",
    [
        KeyIndex(137, ALICE, 0),
        KeyIndex(CHAIN_ID, BOB, 0),
        KeyIndex(CHAIN_ID, ALICE, 1),
        KeyIndex(CHAIN_ID, ALICE, 0, 1),
    ],
    ids=["chain", "address", "nonce", "generation"],
)
async def test_another_index_has_another_key(database: Database, other: KeyIndex) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    await record(database, "b", other)
    assert await load(database, "b") is not None


async def test_the_same_key_is_not_stored_twice(database: Database) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    with pytest.raises(sa.exc.IntegrityError):
        await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 1))


async def test_keys_of_an_address_are_listed_the_oldest_first(database: Database) -> None:
    await record(database, "late", KeyIndex(CHAIN_ID, ALICE, 2), NOW_MS + 2)
    await record(database, "early", KeyIndex(CHAIN_ID, ALICE, 1), NOW_MS + 1)
    await record(database, "bobs", KeyIndex(CHAIN_ID, BOB, 1))
    await record(database, "elsewhere", KeyIndex(137, ALICE, 1))
    await revoke(database, "early")
    async with database.reading() as tx:
        keys = await load_keys(tx, CHAIN_ID, ALICE)
    assert [(key.key_id, key.is_active) for key in keys] == [("early", False), ("late", True)]


async def test_a_row_has_the_id_and_the_index_of_a_key_and_its_times(database: Database) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 7, 2))
    async with database.reading() as tx:
        (row,) = await tx.all(sa.text("SELECT * FROM api_keys"))
    assert row._asdict() == {
        "key_id": "a",
        "chain_id": CHAIN_ID,
        "address": ALICE,
        "nonce": "7",
        "generation": 2,
        "status": ACTIVE,
        "created_at_ms": NOW_MS,
        "revoked_at_ms": None,
        "signed_at_s": None,
    }


async def create_next(database: Database, name: str) -> None:
    """Create the key after the last one, as two requests at once would."""
    async with database.writing() as tx:
        await lock_keys(tx, ALICE)
        nonce = len(await load_keys(tx, CHAIN_ID, ALICE))
        await asyncio.sleep(0.01)
        await record_key(tx, name, KeyIndex(CHAIN_ID, ALICE, nonce), NOW_MS)


async def test_keys_of_an_address_are_created_one_after_the_other(database: Database) -> None:
    await asyncio.gather(*[create_next(database, f"{number}") for number in range(8)])
    async with database.reading() as tx:
        keys = await load_keys(tx, CHAIN_ID, ALICE)
    assert sorted(key.index.nonce for key in keys) == list(range(8))

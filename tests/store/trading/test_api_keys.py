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
    UsedKeys,
    load_active_keys,
    load_key,
    load_latest_key,
    load_used_keys,
    lock_keys,
    record_key,
    record_signing,
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


async def test_active_keys_of_an_address_are_listed_the_oldest_first(database: Database) -> None:
    await record(database, "latest", KeyIndex(CHAIN_ID, ALICE, 4), NOW_MS + 3)
    await record(database, "late", KeyIndex(CHAIN_ID, ALICE, 2), NOW_MS + 2)
    await record(database, "early", KeyIndex(CHAIN_ID, ALICE, 1), NOW_MS + 1)
    await record(database, "revoked", KeyIndex(CHAIN_ID, ALICE, 0), NOW_MS)
    await record(database, "bobs", KeyIndex(CHAIN_ID, BOB, 1))
    await record(database, "elsewhere", KeyIndex(137, ALICE, 1))
    await revoke(database, "revoked")
    async with database.reading() as tx:
        keys = await load_active_keys(tx, CHAIN_ID, ALICE, 2)
        more = await load_active_keys(tx, CHAIN_ID, ALICE, 9)
    assert [key.key_id for key in keys] == ["early", "late"]
    assert [key.key_id for key in more] == ["early", "late", "latest"]


async def test_of_a_nonce_the_key_of_the_highest_generation_is_the_latest(
    database: Database,
) -> None:
    for generation in (9, 10, 2):
        await record(database, f"{generation}", KeyIndex(CHAIN_ID, ALICE, 7, generation))
    await record(database, "other nonce", KeyIndex(CHAIN_ID, ALICE, 77, 11))
    await record(database, "bobs", KeyIndex(CHAIN_ID, BOB, 7, 11))
    await record(database, "elsewhere", KeyIndex(137, ALICE, 7, 11))
    await revoke(database, "10")
    async with database.reading() as tx:
        latest = await load_latest_key(tx, CHAIN_ID, ALICE, 7)
        none = await load_latest_key(tx, CHAIN_ID, ALICE, 8)
    assert latest is not None
    assert (latest.key_id, latest.is_active) == ("10", False)
    assert none is None


async def used(database: Database) -> UsedKeys:
    async with database.reading() as tx:
        return await load_used_keys(tx, CHAIN_ID, ALICE)


async def test_an_address_without_keys_has_used_none(database: Database) -> None:
    await record(database, "bobs", KeyIndex(CHAIN_ID, BOB, 1))
    await record(database, "elsewhere", KeyIndex(137, ALICE, 1))
    assert await used(database) == UsedKeys(0, None, None)


@pytest.mark.parametrize("nonces", [(9, 10), (10, 9), (2**64, 2**63, 3), (NONCE_MAX, 99)], ids=str)
async def test_the_greatest_of_the_used_nonces_is_that_of_their_numbers(
    database: Database, nonces: tuple[int, ...]
) -> None:
    for nonce in nonces:
        await record(database, f"{nonce}", KeyIndex(CHAIN_ID, ALICE, nonce))
    assert await used(database) == UsedKeys(len(nonces), max(nonces), None)


@pytest.mark.parametrize(
    ("revoked", "signed_ahead", "until_s"),
    [
        ({}, {"a": 900}, None),
        ({"a": 5_999}, {}, 5),
        ({"a": 5_999, "b": 7_000}, {}, 7),
        ({"a": 5_999, "b": 7_000}, {"a": 9}, 9),
        ({"a": 5_999}, {"a": 3, "b": 900}, 5),
    ],
)
async def test_a_request_for_a_revoked_key_may_be_as_young_as_its_revocation_or_signature(
    database: Database, revoked: dict[str, int], signed_ahead: dict[str, int], until_s: int | None
) -> None:
    await record(database, "a", KeyIndex(CHAIN_ID, ALICE, 0))
    await record(database, "b", KeyIndex(CHAIN_ID, ALICE, 1))
    async with database.writing() as tx:
        for key_id, at_s in signed_ahead.items():
            await record_signing(tx, key_id, at_s)
    for key_id, at_ms in revoked.items():
        await revoke(database, key_id, at_ms)
    assert await used(database) == UsedKeys(2, 1, until_s)


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
        nonce = (await load_used_keys(tx, CHAIN_ID, ALICE)).created
        await asyncio.sleep(0.01)
        await record_key(tx, name, KeyIndex(CHAIN_ID, ALICE, nonce), NOW_MS)


async def test_keys_of_an_address_are_created_one_after_the_other(database: Database) -> None:
    await asyncio.gather(*[create_next(database, f"{number}") for number in range(8)])
    async with database.reading() as tx:
        keys = await load_active_keys(tx, CHAIN_ID, ALICE, 9)
    assert sorted(key.index.nonce for key in keys) == list(range(8))

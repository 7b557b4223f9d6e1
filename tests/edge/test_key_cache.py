"""The cache of API keys: revocations, its age limit and its size limit."""

from collections.abc import Callable

import pytest
from tests.edge.rig import (
    ALICE,
    ALICES,
    BOBS,
    MASTER_KEY,
    UNKNOWN_KEY,
    RacingDatabase,
    check,
    credentials_of,
    l2_headers,
)
from tests.rigs.values import CHAIN_ID, NOW_MS, an_address

from foretell.domain.errors.http import RevokedKey, UnknownKey
from foretell.domain.values.credentials import KeyIndex
from foretell.edge.auth import KEY_AGE_MS_MAX, UNKNOWN_AGE_MS_MAX, KeyRing
from foretell.store.database import Database
from foretell.store.trading.api_keys import record_key, revoke_key
from foretell.store.trading.readonly_keys import (
    ReadonlyKey,
    delete_readonly_key,
    readonly_hash,
    record_readonly_key,
)

pytestmark = pytest.mark.anyio


async def revoke(database: Database, key_id: str = ALICES.key_id) -> None:
    async with database.writing() as tx:
        assert await revoke_key(tx, key_id, NOW_MS)


async def test_a_revoked_key_is_refused_once_it_left_the_cache(
    database: RacingDatabase, ring: KeyRing
) -> None:
    await check(ring, l2_headers())
    await revoke(database)
    ring.forget(ALICES.key_id)
    with pytest.raises(RevokedKey):
        await check(ring, l2_headers())


async def test_a_key_revoked_by_another_process_is_refused_once_the_cache_is_empty(
    database: RacingDatabase, ring: KeyRing
) -> None:
    await check(ring, l2_headers())
    await revoke(database)
    ring.forget_all()
    with pytest.raises(RevokedKey):
        await check(ring, l2_headers())


async def test_a_revoked_key_is_refused_after_its_cache_time_without_a_notice(
    database: RacingDatabase,
) -> None:
    times_ms = [NOW_MS]
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: times_ms[-1])
    await check(ring, l2_headers())
    await revoke(database)
    times_ms.append(NOW_MS + KEY_AGE_MS_MAX - 1)
    assert (await check(ring, l2_headers())).address == ALICE
    times_ms.append(NOW_MS + KEY_AGE_MS_MAX)
    with pytest.raises(RevokedKey):
        await check(ring, l2_headers())


@pytest.mark.case("C-09")
async def test_a_key_read_before_the_clock_was_set_back_is_read_again(
    database: RacingDatabase,
) -> None:
    times_ms = [NOW_MS]
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: times_ms[-1])
    await check(ring, l2_headers())
    await revoke(database)
    times_ms.append(NOW_MS - 1)
    with pytest.raises(RevokedKey):
        await check(ring, l2_headers())


async def test_an_unused_key_can_be_dropped_from_the_cache(ring: KeyRing) -> None:
    ring.forget(UNKNOWN_KEY)
    assert (await check(ring, l2_headers())).address == ALICE


@pytest.mark.parametrize("forget", [KeyRing.forget_all, lambda ring: ring.forget(ALICES.key_id)])
async def test_a_key_revoked_during_its_look_up_is_not_cached(
    database: RacingDatabase, ring: KeyRing, forget: Callable[[KeyRing], None]
) -> None:
    """The read begins before the revocation, and ends after the key left the cache."""

    async def act() -> None:
        await revoke(database)
        forget(ring)

    database.after_reading = act
    assert (await check(ring, l2_headers())).address == ALICE
    with pytest.raises(RevokedKey):
        await check(ring, l2_headers())


async def test_a_key_that_is_in_use_is_not_looked_up_again(
    database: RacingDatabase, ring: KeyRing
) -> None:
    await check(ring, l2_headers())
    await database.close()
    async with database.writing() as tx:
        await revoke_key(tx, ALICES.key_id, NOW_MS)
    assert (await check(ring, l2_headers())).address == ALICE


async def test_the_least_recently_used_key_leaves_a_full_cache(database: RacingDatabase) -> None:
    carols = credentials_of("carol")
    async with database.writing() as tx:
        await record_key(tx, carols.key_id, KeyIndex(CHAIN_ID, an_address("carol"), 0), NOW_MS)
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS, keys_cached_max=2)
    for used in (ALICES, BOBS, ALICES, carols):
        await ring.authenticate_credentials(*used)
    for key_id in (ALICES.key_id, BOBS.key_id, carols.key_id):
        await revoke(database, key_id)

    assert (await ring.authenticate_credentials(*ALICES)).key_id == ALICES.key_id
    assert (await ring.authenticate_credentials(*carols)).key_id == carols.key_id
    with pytest.raises(RevokedKey):
        await ring.authenticate_credentials(*BOBS)


async def reads(database: RacingDatabase, ring: KeyRing, key_id: str) -> bool:
    """Return whether a request with an unknown key reads the database."""
    have_read = []

    async def note() -> None:
        have_read.append(key_id)

    database.after_reading = note
    with pytest.raises(UnknownKey):
        await check(ring, l2_headers(api_key=key_id))
    return bool(have_read)


async def test_attack_l10_an_unknown_key_is_looked_up_once(database: RacingDatabase) -> None:
    """Each guess once cost a read of the database."""
    times_ms = [NOW_MS]
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: times_ms[-1])
    assert [await reads(database, ring, UNKNOWN_KEY) for _ in range(3)] == [True, False, False]
    assert not await reads(database, ring, "no id at all")
    times_ms.append(NOW_MS + UNKNOWN_AGE_MS_MAX)
    assert await reads(database, ring, UNKNOWN_KEY)


async def test_attack_l10_a_key_is_known_as_soon_as_it_is_created(database: RacingDatabase) -> None:
    index = KeyIndex(CHAIN_ID, ALICE, 7)
    created = credentials_of("alice", 7)
    ring = KeyRing(database, MASTER_KEY, [CHAIN_ID], lambda: NOW_MS)
    headers = l2_headers(
        api_key=created.key_id, passphrase=created.passphrase, secret=created.secret
    )
    with pytest.raises(UnknownKey):
        await check(ring, headers)
    assert ring.credentials(index) == created
    async with database.writing() as tx:
        await record_key(tx, created.key_id, index, NOW_MS)
    ring.learn(created.key_id)
    assert (await check(ring, headers)).key_id == created.key_id


async def test_a_read_only_key_whose_deletion_arrives_while_it_is_read_is_not_cached(
    database: RacingDatabase, ring: KeyRing
) -> None:
    key = ring.readonly_key(ALICE, "a salt")
    key_hash = readonly_hash(key)
    async with database.writing() as tx:
        await record_readonly_key(tx, ReadonlyKey(key_hash, ALICE, "a salt", NOW_MS, None))

    async def delete() -> None:
        async with database.writing() as tx:
            assert await delete_readonly_key(tx, ALICE, key_hash, NOW_MS)
        ring.forget(key_hash)

    database.after_reading = delete
    assert await ring.is_readonly_key(ALICE, key)
    assert not await ring.is_readonly_key(ALICE, key)

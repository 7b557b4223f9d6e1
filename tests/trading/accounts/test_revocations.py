"""M4: what the log of revocations gives back to an older database, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.rigs.values import an_address
from tests.runtime.lack_of_threads import lack_of_threads

from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.values.credentials import KeyIndex
from foretell.journal.files.revocations import RevocationLog
from foretell.store.database import Database
from foretell.store.tables import api_keys
from foretell.store.trading.api_keys import ApiKey, record_key, revoke_key
from foretell.store.trading.builder_keys import BuilderKey, load_builder_keys, record_builder_key
from foretell.store.trading.readonly_keys import (
    ReadonlyKey,
    load_readonly_keys,
    record_readonly_key,
)
from foretell.trading.accounts.revocations import Revocations

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")
EPOCH = "epoch"


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database


@pytest.fixture
def revocations(tmp_path: Path) -> Revocations:
    return Revocations(RevocationLog(tmp_path), EPOCH)


def a_key_of(generation: int) -> ApiKey:
    index = KeyIndex(1, ALICE, 7, generation)
    return ApiKey(f"key {generation}", index, "active", 10, None, 30)


async def known(database: Database) -> list[tuple[str, str, int | None, int | None]]:
    async with database.reading() as tx:
        keys = await tx.all(
            sa.select(api_keys)
            .where(api_keys.c.address == ALICE)
            .order_by(api_keys.c.created_at_ms, api_keys.c.key_id)
        )
    return [(key.key_id, key.status, key.revoked_at_ms, key.signed_at_s) for key in keys]


async def test_attack_m4_an_older_database_learns_later_revocations(
    database: Database, revocations: Revocations
) -> None:
    """One key is active in it, one it never saw; the next generation follows both."""
    async with database.writing() as tx:
        await record_key(tx, "key 0", a_key_of(0).index, 10)
    await revocations.record(a_key_of(0), 20)
    await revocations.record(a_key_of(1), 40)
    assert await revocations.restore(database) == 2
    assert await known(database) == [("key 0", "revoked", 20, None), ("key 1", "revoked", 40, 30)]
    assert await revocations.restore(database) == 0


async def test_a_shortened_log_revokes_every_generation_of_an_older_database(
    database: Database, revocations: Revocations, tmp_path: Path
) -> None:
    """The database is of a time when the second of five generations was active; the sixth follows."""
    async with database.writing() as tx:
        await record_key(tx, "key 0", a_key_of(0).index, 10)
        await revoke_key(tx, "key 0", 20)
        await record_key(tx, "key 1", a_key_of(1).index, 20)
        await record_key(tx, "other", KeyIndex(1, ALICE, 8, 0), 20)
    for generation in range(5):
        await revocations.record(a_key_of(generation), 20 + generation)
    assert RevocationLog(tmp_path).compact(bytes_min=0) == 4
    assert await revocations.restore(database) == 1
    assert sorted(await known(database)) == [
        ("key 0", "revoked", 20, None),
        ("key 1", "revoked", 24, None),
        ("key 4", "revoked", 24, 30),
        ("other", "active", None, None),
    ]
    assert await revocations.restore(database) == 0


async def test_a_log_that_cannot_be_shortened_stays_as_it_is(
    revocations: Revocations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RevocationLog(tmp_path)

    def refuse() -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "compact", refuse)
    await revocations.record(a_key_of(0), 20)
    assert await Revocations(log, EPOCH).compact() == 0
    assert await revocations.compact() == 0
    assert len(list(log.read())) == 1


async def test_a_revocation_that_the_database_knows_stays_as_it_is(
    database: Database, revocations: Revocations
) -> None:
    async with database.writing() as tx:
        await record_key(tx, "key 0", a_key_of(0).index, 10)
        await revoke_key(tx, "key 0", 20)
    await revocations.record(a_key_of(0), 99)
    assert await revocations.restore(database) == 0
    assert await known(database) == [("key 0", "revoked", 20, None)]


async def test_revocations_of_a_lost_database_are_nothing_to_another(
    database: Database, revocations: Revocations, tmp_path: Path
) -> None:
    await revocations.record(a_key_of(0), 20)
    assert await Revocations(RevocationLog(tmp_path), "other epoch").restore(database) == 0
    assert await known(database) == []


async def deleted_keys(database: Database) -> list[tuple[str, int | None]]:
    async with database.reading() as tx:
        builders = await load_builder_keys(tx, ALICE)
        readers = await load_readonly_keys(tx, ALICE)
    return [
        *((key.salt, key.deleted_at_ms) for key in builders),
        *((key.salt, key.deleted_at_ms) for key in readers),
    ]


async def test_an_older_database_learns_deletions_of_builders_and_read_only_keys(
    database: Database, revocations: Revocations
) -> None:
    """Of each kind one key is active in it, one it never saw, and one was never deleted."""
    builders = [BuilderKey(f"b{n}", ALICE, f"builder {n}", 10 + n, None) for n in range(3)]
    readers = [ReadonlyKey(f"r{n}", ALICE, f"reader {n}", 10 + n, None) for n in range(3)]
    async with database.writing() as tx:
        for number in (0, 2):
            await record_builder_key(tx, builders[number])
            await record_readonly_key(tx, readers[number])
    for number in (0, 1):
        await revocations.record_builder_deletion(builders[number], 20 + number)
        await revocations.record_readonly_deletion(readers[number], 30 + number)
    assert await revocations.restore(database) == 4
    assert await deleted_keys(database) == [
        ("builder 0", 20),
        ("builder 1", 21),
        ("builder 2", None),
        ("reader 0", 30),
        ("reader 1", 31),
        ("reader 2", None),
    ]
    assert await revocations.restore(database) == 0


@pytest.mark.case("A-11")
def test_a_log_whose_thread_is_not_started_refuses_the_revocation_and_logs_none(
    revocations: Revocations, tmp_path: Path
) -> None:
    """A loop of its own has no thread yet, and leaves none to other tests."""

    async def record() -> None:
        with lack_of_threads(), pytest.raises(StoreUnavailable, match="starts no more threads"):
            await revocations.record(a_key_of(0), 20)
        await revocations.record(a_key_of(1), 30)

    asyncio.run(record())
    assert [each.key_id for each in RevocationLog(tmp_path).read()] == ["key 1"]


async def test_a_log_that_cannot_be_written_refuses_the_revocation(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="the log of revocations: No such file"):
        await Revocations(RevocationLog(tmp_path / "none"), EPOCH).record(a_key_of(0), 20)

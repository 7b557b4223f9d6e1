"""Snapshots next to a journal in a database, and the removal of what they replace."""

import pytest
from tests.rigs.journals import PostgresJournals, query, writing, written

from foretell.domain.errors.storage import JournalDamaged, LeaseLost
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.port import Snapshot
from foretell.journal.postgres.connections import connected
from foretell.journal.postgres.journal import PostgresJournal
from foretell.journal.postgres.rows import read_entries
from foretell.journal.postgres.snapshots import compact, keep_snapshot

pytestmark = pytest.mark.anyio

SHARD = ShardNumber(0)
PAYLOADS = [b"payload %d" % number for number in range(1, 31)]


@pytest.fixture
async def journal(journal_url: str) -> PostgresJournal:
    """A journal of thirty entries."""
    await written(PostgresJournals(journal_url).open("j"), PAYLOADS)
    return PostgresJournals(journal_url).open("j")


def sequences(url: str, table: str) -> list[int]:
    statement = f"SELECT sequence FROM journal.{table} ORDER BY sequence"
    return [row["sequence"] for row in query(url, statement)]


async def keep(journal: PostgresJournal, *kept: int) -> None:
    for sequence in kept:
        await journal.keep_snapshot(Snapshot(sequence, b"state %d" % sequence))


async def test_a_journal_begins_without_a_snapshot(journal: PostgresJournal) -> None:
    assert journal.snapshot() is None
    await journal.close()


async def test_the_newest_snapshot_is_found_again_after_a_restart(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 5, 12)
    await journal.close()
    again = PostgresJournals(journal_url).open("j")
    assert again.snapshot() == Snapshot(12, b"state 12")
    await again.close()


async def test_a_large_snapshot_is_kept_in_parts(
    journal: PostgresJournal, journal_url: str
) -> None:
    large = Snapshot(7, bytes(range(256)) * 40)
    holder = journal.begin_snapshot().holder
    async with connected(journal_url) as connection:
        await keep_snapshot(connection, SHARD, holder, large, part_bytes=1_000)
    assert len(sequences(journal_url, "snapshot_part")) == 11
    assert journal.snapshot() == large
    await journal.close()


async def test_a_snapshot_that_is_kept_again_is_the_same(journal: PostgresJournal) -> None:
    await keep(journal, 9, 9)
    assert journal.snapshot() == Snapshot(9, b"state 9")
    await journal.close()


async def test_parts_without_a_head_are_no_snapshot(
    journal: PostgresJournal, journal_url: str
) -> None:
    """A stop while a snapshot is kept leaves them."""
    await keep(journal, 5)
    query(journal_url, "INSERT INTO journal.snapshot_part VALUES (0, 20, 0, 'half')")
    assert journal.snapshot() == Snapshot(5, b"state 5")
    await keep(journal, 21, 22)
    assert sequences(journal_url, "snapshot_part") == [21, 22]
    await journal.close()


async def test_one_snapshot_removes_nothing(journal: PostgresJournal, journal_url: str) -> None:
    await keep(journal, 20)
    assert sequences(journal_url, "record") == list(range(1, 31))
    await journal.close()


@pytest.mark.parametrize("batch_records", [1, 4, 100])
async def test_what_two_snapshots_do_not_need_is_removed(
    journal: PostgresJournal, journal_url: str, batch_records: int
) -> None:
    holder = journal.begin_snapshot().holder
    async with connected(journal_url) as connection:
        for sequence in (10, 15, 30):
            await keep_snapshot(connection, SHARD, holder, Snapshot(sequence, b"state"))
        assert await compact(connection, SHARD, batch_records=batch_records) == 15
    assert sequences(journal_url, "record") == list(range(16, 31))
    assert sequences(journal_url, "snapshot") == [15, 30]
    assert sequences(journal_url, "snapshot_part") == [15, 30]
    await journal.close()


async def test_entries_after_either_snapshot_are_read(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10, 20)
    for after in (10, 20):
        assert [entry.payload for entry in read_entries(journal_url, SHARD, after)] == PAYLOADS[
            after:
        ]
    await journal.close()


async def test_the_newest_snapshot_is_one_that_is_not_after_a_sequence(
    journal: PostgresJournal,
) -> None:
    await keep(journal, 10, 20)
    found = [journal.snapshot(until) for until in (None, 20, 19, 10, 9)]
    assert [None if each is None else each.sequence for each in found] == [20, 20, 10, 10, None]
    await journal.close()


async def test_reading_removed_entries_is_damage(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10, 20)
    with pytest.raises(JournalDamaged, match="at sequence 1: sequence 1 is missing"):
        list(read_entries(journal_url, SHARD))
    await journal.close()


async def test_a_journal_resumes_after_a_removal(journal: PostgresJournal) -> None:
    await keep(journal, 29, 30)
    async with writing(journal) as calls:
        await calls.until_synced(journal.append(b"more"))
        assert [entry.payload for entry in journal.entries(30)] == [b"more"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal.snapshot_part SET payload = payload || 'x' WHERE sequence = 20",
        "DELETE FROM journal.snapshot_part WHERE sequence = 20",
        "UPDATE journal.snapshot SET chain = 'x' WHERE sequence = 20",
        "UPDATE journal.snapshot SET checksum = 'x' WHERE sequence = 20",
    ],
)
async def test_a_damaged_snapshot_is_skipped_for_the_one_before(
    journal: PostgresJournal, journal_url: str, statement: str
) -> None:
    await keep(journal, 10, 20)
    query(journal_url, statement)
    assert journal.snapshot() == Snapshot(10, b"state 10")
    await journal.close()


async def test_without_an_intact_snapshot_all_entries_must_be_there(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10)
    query(journal_url, "UPDATE journal.snapshot SET checksum = 'x'")
    assert journal.snapshot() is None
    await keep(journal, 20)
    query(journal_url, "UPDATE journal.snapshot SET checksum = 'x'")
    with pytest.raises(JournalDamaged, match="no snapshot is complete"):
        journal.snapshot()
    await journal.close()


async def test_a_snapshot_before_a_gap_is_not_used(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10)
    query(journal_url, "DELETE FROM journal.record WHERE sequence <= 15")
    with pytest.raises(JournalDamaged, match="no snapshot is complete"):
        journal.snapshot()
    await journal.close()


async def test_a_process_that_lost_the_lease_keeps_no_snapshot(
    journal: PostgresJournal, journal_url: str
) -> None:
    query(journal_url, "UPDATE journal.lease SET holder = 'other', epoch = epoch + 1")
    with pytest.raises(LeaseLost):
        await keep(journal, 10)
    assert sequences(journal_url, "snapshot") == []
    await journal.close()


async def test_a_snapshot_of_a_sequence_that_is_not_durable_raises(
    journal: PostgresJournal,
) -> None:
    with pytest.raises(AssertionError):
        await keep(journal, 31)
    await journal.close()

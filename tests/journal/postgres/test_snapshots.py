"""Snapshots beside a journal in a database, and what they let go of."""

import pytest
from tests.journal.conftest import writing, written
from tests.journal.shards import Shards, query

from foretell.domain.errors.storage import JournalDamaged, LeaseLost
from foretell.journal.port import Snapshot
from foretell.journal.postgres import snapshots
from foretell.journal.postgres.journal import PostgresJournal
from foretell.journal.postgres.rows import read_entries

pytestmark = pytest.mark.anyio

PAYLOADS = [b"payload %d" % number for number in range(1, 31)]


@pytest.fixture
async def journal(journal_url: str) -> PostgresJournal:
    """A journal of thirty entries."""
    await written(Shards(journal_url).open("j"), PAYLOADS)
    return Shards(journal_url).open("j")


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
    again = Shards(journal_url).open("j")
    assert again.snapshot() == Snapshot(12, b"state 12")
    await again.close()


async def test_a_large_snapshot_is_kept_in_parts(
    journal: PostgresJournal, journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "PART_BYTES", 1_000)
    large = Snapshot(7, bytes(range(256)) * 40)
    await journal.keep_snapshot(large)
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
    """As a stop in the midst of keeping one leaves them."""
    await keep(journal, 5)
    query(journal_url, "INSERT INTO journal.snapshot_part VALUES (0, 20, 0, 'half')")
    assert journal.snapshot() == Snapshot(5, b"state 5")
    await keep(journal, 21, 22)
    assert sequences(journal_url, "snapshot_part") == [21, 22]
    await journal.close()


async def test_one_snapshot_lets_go_of_nothing(journal: PostgresJournal, journal_url: str) -> None:
    await keep(journal, 20)
    assert sequences(journal_url, "record") == list(range(1, 31))
    await journal.close()


@pytest.mark.parametrize("delete_batch_records", [1, 4, 100])
async def test_what_two_snapshots_do_not_need_is_let_go_of(
    journal: PostgresJournal,
    journal_url: str,
    monkeypatch: pytest.MonkeyPatch,
    delete_batch_records: int,
) -> None:
    monkeypatch.setattr(snapshots, "DELETE_BATCH_RECORDS", delete_batch_records)
    await keep(journal, 10, 15, 30)
    assert sequences(journal_url, "record") == list(range(16, 31))
    assert sequences(journal_url, "snapshot") == [15, 30]
    assert sequences(journal_url, "snapshot_part") == [15, 30]
    await journal.close()


async def test_entries_after_either_snapshot_are_read(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10, 20)
    for after in (10, 20):
        assert [entry.payload for entry in read_entries(journal_url, 0, after)] == PAYLOADS[after:]
    await journal.close()


async def test_entries_that_were_let_go_of_are_missed(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10, 20)
    with pytest.raises(JournalDamaged, match="at sequence 1: sequence 1 is gone"):
        list(read_entries(journal_url, 0))
    await journal.close()


async def test_a_journal_goes_on_after_it_let_go(journal: PostgresJournal) -> None:
    await keep(journal, 29, 30)
    async with writing(journal) as told:
        await told.until_synced(journal.append(b"more"))
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
async def test_a_damaged_snapshot_is_passed_over_for_the_one_before(
    journal: PostgresJournal, journal_url: str, statement: str
) -> None:
    await keep(journal, 10, 20)
    query(journal_url, statement)
    assert journal.snapshot() == Snapshot(10, b"state 10")
    await journal.close()


async def test_without_a_whole_snapshot_all_entries_must_be_there(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10)
    query(journal_url, "UPDATE journal.snapshot SET checksum = 'x'")
    assert journal.snapshot() is None
    await keep(journal, 20)
    query(journal_url, "UPDATE journal.snapshot SET checksum = 'x'")
    with pytest.raises(JournalDamaged, match="no snapshot is whole"):
        journal.snapshot()
    await journal.close()


async def test_a_snapshot_before_a_gap_is_of_no_use(
    journal: PostgresJournal, journal_url: str
) -> None:
    await keep(journal, 10)
    query(journal_url, "DELETE FROM journal.record WHERE sequence <= 15")
    with pytest.raises(JournalDamaged, match="no snapshot is whole"):
        journal.snapshot()
    await journal.close()


async def test_who_lost_the_lease_keeps_no_snapshot(
    journal: PostgresJournal, journal_url: str
) -> None:
    query(journal_url, "UPDATE journal.lease SET holder = 'other', epoch = epoch + 1")
    with pytest.raises(LeaseLost):
        await keep(journal, 10)
    assert sequences(journal_url, "snapshot") == []
    await journal.close()


async def test_a_snapshot_is_of_what_is_durable(journal: PostgresJournal) -> None:
    with pytest.raises(AssertionError):
        await keep(journal, 31)
    await journal.close()

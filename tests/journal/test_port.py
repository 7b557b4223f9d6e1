"""The behaviour of every journal."""

import asyncio
import itertools
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journal.rig import SEGMENT_BYTES, Open, Stored
from tests.rigs.journals import JournalCalls, writing, written

from foretell.domain.errors.storage import FolderInUse, JournalDamaged, LeaseHeld
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.frames import payload_bytes_max
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.segments import HEAD_BYTES
from foretell.journal.port import Entry, Journal, PostgresJournalAddress, Snapshot

pytestmark = pytest.mark.anyio


def contents(journal: Journal, after: int = 0) -> list[bytes]:
    return [entry.payload for entry in journal.entries(after)]


async def test_an_address_shows_no_password() -> None:
    address = PostgresJournalAddress("postgresql://me:hunter2@db/foretell", ShardNumber(3), b"mine")
    assert (repr(address), f"{[address]}") == (
        "PostgresJournalAddress(shard=3, holder=b'mine')",
        "[PostgresJournalAddress(shard=3, holder=b'mine')]",
    )


async def test_a_new_journal_is_empty(open_journal: Open) -> None:
    journal = open_journal("j")
    assert journal.last_sequence == 0
    assert list(journal.entries()) == []
    await journal.close()


async def test_sequences_count_from_one_without_a_gap(open_journal: Open) -> None:
    journal = open_journal("j")
    async with writing(journal) as calls:
        assert [journal.append(b"a"), journal.append(b"b"), journal.append(b"c")] == [1, 2, 3]
        assert journal.last_sequence == 3
        await calls.until_synced(3)


async def test_payloads_are_read_in_the_order_of_writing(open_journal: Open) -> None:
    payloads = [bytes([number]) * (number + 1) for number in range(200)]
    await written(open_journal("j"), payloads)
    journal = open_journal("j")
    assert list(journal.entries()) == [
        Entry(sequence, payload) for sequence, payload in enumerate(payloads, 1)
    ]
    await journal.close()


@pytest.mark.parametrize("after", [0, 1, 57, 199, 200, 500])
async def test_reading_may_begin_after_any_sequence(open_journal: Open, after: int) -> None:
    payloads = [b"%d" % number * 40 for number in range(200)]
    await written(open_journal("j"), payloads)
    journal = open_journal("j")
    assert contents(journal, after) == payloads[after:]
    await journal.close()


async def test_a_journal_resumes_where_it_stopped(open_journal: Open) -> None:
    for start in (0, 3, 6):
        journal = open_journal("j")
        assert journal.last_sequence == start
        await written(journal, [b"%d" % number for number in range(start, start + 3)])
    journal = open_journal("j")
    assert contents(journal) == [b"%d" % number for number in range(9)]
    await journal.close()


async def test_syncs_are_reported_in_order_in_the_thread_of_the_loop(
    open_journal: Open,
) -> None:
    journal = open_journal("j")
    calls, threads = JournalCalls(), set()

    def on_synced(sequence: int) -> None:
        threads.add(threading.current_thread())
        calls.on_synced(sequence)

    journal.start(on_synced, calls.on_failed)
    for number in range(100):
        journal.append(b"x" * (number + 1))
        await asyncio.sleep(0)
    await calls.until_synced(100)
    await journal.close()
    assert threads == {threading.current_thread()}
    assert calls.synced == sorted(set(calls.synced))
    assert calls.synced[-1] == 100


async def test_payloads_appended_together_are_synced_together(open_journal: Open) -> None:
    journal = open_journal("j")
    async with writing(journal) as calls:
        for _ in range(2_000):
            journal.append(b"x" * 10)
        await calls.until_synced(2_000)
    assert len(calls.synced) < 500


async def test_payloads_reported_as_synced_are_stored(open_journal: Open, stored: Stored) -> None:
    journal = open_journal("j")
    async with writing(journal) as calls:
        for number in range(20):
            sequence = journal.append(b"payload %d" % number)
            await calls.until_synced(sequence)
            assert b"payload %d" % number in b"".join(stored())


async def test_closing_makes_durable_what_was_appended(open_journal: Open) -> None:
    journal = open_journal("j")
    async with writing(journal):
        for number in range(100):
            journal.append(b"%d" % number)
    again = open_journal("j")
    assert contents(again) == [b"%d" % number for number in range(100)]
    await again.close()


async def test_a_journal_that_was_never_started_closes_too(open_journal: Open) -> None:
    journal = open_journal("j")
    await journal.close()
    await written(open_journal("j"), [b"x"])


async def test_two_writers_never_share_a_journal(open_journal: Open) -> None:
    journal = open_journal("j")
    with pytest.raises((FolderInUse, LeaseHeld)):
        open_journal("j")
    other = open_journal("another")
    await other.close()
    await journal.close()
    await open_journal("j").close()


async def test_a_new_journal_has_no_snapshot(open_journal: Open) -> None:
    journal = open_journal("j")
    assert journal.snapshot() is None
    await journal.close()


PAYLOADS = [b"%d" % number * 300 for number in range(200)]


async def kept(open_journal: Open, *sequences: int) -> Journal:
    """Return a journal of 200 entries that was asked to keep snapshots after these sequences."""
    await written(open_journal("j"), PAYLOADS)
    journal = open_journal("j")
    for sequence in sequences:
        await journal.keep_snapshot(Snapshot(sequence, b"state after %d" % sequence))
    return journal


async def test_the_newest_snapshot_is_found_by_the_next_start(open_journal: Open) -> None:
    await (await kept(open_journal, 60, 120)).close()
    journal = open_journal("j")
    assert journal.snapshot() == Snapshot(120, b"state after 120")
    assert journal.last_sequence == 200
    await journal.close()


async def test_with_one_snapshot_nothing_is_removed(open_journal: Open) -> None:
    journal = await kept(open_journal, 120)
    assert contents(journal) == PAYLOADS
    await journal.close()


@pytest.mark.parametrize("sequences", [(60, 120), (3, 60, 120), (1, 200), (199, 200)])
async def test_entries_that_the_two_newest_snapshots_do_not_need_are_removed(
    open_journal: Open, sequences: tuple[int, ...]
) -> None:
    journal = await kept(open_journal, *sequences)
    for needed in sequences[-2:]:
        assert contents(journal, needed) == PAYLOADS[needed:]
    await journal.close()


async def test_reading_from_a_removed_beginning_is_damage(
    open_journal: Open,
) -> None:
    journal = await kept(open_journal, 120, 180)
    with pytest.raises(JournalDamaged):
        next(iter(journal.entries()))
    await journal.close()


async def test_a_journal_resumes_after_its_beginning_was_removed(open_journal: Open) -> None:
    await (await kept(open_journal, 120, 200)).close()
    await written(open_journal("j"), [b"more"])
    journal = open_journal("j")
    assert list(journal.entries(200)) == [Entry(201, b"more")]
    await journal.close()


async def test_a_snapshot_is_kept_while_entries_are_written(open_journal: Open) -> None:
    journal = open_journal("j")
    async with writing(journal) as calls:
        for number, payload in enumerate(PAYLOADS, 1):
            journal.append(payload)
            if number % 50 == 0:
                await calls.until_synced(number)
                await journal.keep_snapshot(Snapshot(number, b"%d" % number))
    journal = open_journal("j")
    assert journal.snapshot() == Snapshot(200, b"200")
    assert contents(journal, 150) == PAYLOADS[150:]
    await journal.close()


async def test_payloads_of_every_size_are_kept(open_journal: Open) -> None:
    longest = payload_bytes_max(HEAD_BYTES, SEGMENT_BYTES)
    sizes = [1, 7, 8, 9, 471, 472, 473, 4052, 4096, SEGMENT_BYTES // 2, longest]
    payloads = [bytes(size) for size in sizes] + [b"\xff" * size for size in sizes]
    await written(open_journal("j"), payloads)
    journal = open_journal("j")
    assert contents(journal) == payloads
    await journal.close()


@settings(max_examples=30, deadline=None)
@given(
    runs=st.lists(
        st.lists(st.binary(min_size=1, max_size=3_000), max_size=12), min_size=1, max_size=5
    )
)
async def test_any_payloads_in_any_number_of_runs_are_read_again(
    runs: list[list[bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for payloads in runs:
            journal = FileJournal(Path(folder), segment_bytes=8 * 1024)
            await written(journal, payloads)
        journal = FileJournal(Path(folder), segment_bytes=8 * 1024)
        assert contents(journal) == list(itertools.chain(*runs))
        await journal.close()

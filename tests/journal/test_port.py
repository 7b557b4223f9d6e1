"""What every journal must do."""

import asyncio
import itertools
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journal.conftest import SEGMENT_BYTES, Open, Stored, Told, writing, written

from foretell.domain.storage_errors import FolderInUse, LeaseHeld
from foretell.journal.file import FileJournal
from foretell.journal.port import Entry, Journal

pytestmark = pytest.mark.anyio


def contents(journal: Journal, after: int = 0) -> list[bytes]:
    return [entry.payload for entry in journal.entries(after)]


async def test_a_new_journal_is_empty(open_journal: Open) -> None:
    journal = open_journal("j")
    assert journal.last_sequence == 0
    assert list(journal.entries()) == []
    await journal.close()


async def test_sequences_count_from_one_without_a_gap(open_journal: Open) -> None:
    journal = open_journal("j")
    async with writing(journal) as told:
        assert [journal.append(b"a"), journal.append(b"b"), journal.append(b"c")] == [1, 2, 3]
        assert journal.last_sequence == 3
        await told.until_synced(3)


async def test_what_was_written_is_read_in_its_order(open_journal: Open) -> None:
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


async def test_a_journal_goes_on_where_it_stopped(open_journal: Open) -> None:
    for start in (0, 3, 6):
        journal = open_journal("j")
        assert journal.last_sequence == start
        await written(journal, [b"%d" % number for number in range(start, start + 3)])
    journal = open_journal("j")
    assert contents(journal) == [b"%d" % number for number in range(9)]
    await journal.close()


async def test_what_is_synced_is_told_in_order_in_the_threads_of_the_loop(
    open_journal: Open,
) -> None:
    journal = open_journal("j")
    told, threads = Told(), set()

    def on_synced(sequence: int) -> None:
        threads.add(threading.current_thread())
        told.on_synced(sequence)

    journal.start(on_synced, told.on_failed)
    for number in range(100):
        journal.append(b"x" * (number + 1))
        await asyncio.sleep(0)
    await told.until_synced(100)
    await journal.close()
    assert threads == {threading.current_thread()}
    assert told.synced == sorted(set(told.synced))
    assert told.synced[-1] == 100


async def test_what_was_appended_together_is_synced_together(open_journal: Open) -> None:
    journal = open_journal("j")
    async with writing(journal) as told:
        for _ in range(2_000):
            journal.append(b"x" * 10)
        await told.until_synced(2_000)
    assert len(told.synced) < 500


async def test_what_is_told_to_be_synced_is_on_the_disk(open_journal: Open, stored: Stored) -> None:
    journal = open_journal("j")
    async with writing(journal) as told:
        for number in range(20):
            sequence = journal.append(b"payload %d" % number)
            await told.until_synced(sequence)
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


async def test_payloads_of_every_size_are_kept(open_journal: Open) -> None:
    sizes = [1, 7, 8, 9, 471, 472, 473, 4096, SEGMENT_BYTES // 2, SEGMENT_BYTES - 88]
    payloads = [bytes(size) for size in sizes] + [b"\xff" * size for size in sizes]
    await written(open_journal("j"), payloads)
    journal = open_journal("j")
    assert contents(journal) == payloads
    await journal.close()


@settings(max_examples=30, deadline=None)
@given(
    lives=st.lists(
        st.lists(st.binary(min_size=1, max_size=3_000), max_size=12), min_size=1, max_size=5
    )
)
async def test_whatever_is_written_in_whatever_lives_is_read_again(
    lives: list[list[bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for payloads in lives:
            journal = FileJournal(Path(folder), segment_bytes=8 * 1024)
            await written(journal, payloads)
        journal = FileJournal(Path(folder), segment_bytes=8 * 1024)
        assert contents(journal) == list(itertools.chain(*lives))
        await journal.close()

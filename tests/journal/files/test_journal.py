import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journal.files.rig import PAYLOADS, SEGMENT_BYTES, open_journal, read
from tests.journal.files.version_1 import Writer, write_version_1
from tests.rigs.journals import ALWAYS_INLINE, NEVER_INLINE, JournalCalls, writing, written

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.group_commit import InlineLimits
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import segment_paths
from foretell.journal.framing import PAYLOAD_BYTES_MAX

pytestmark = pytest.mark.anyio

LIMITED = Path(__file__).with_name("limited.py")


async def test_segments_follow_each_other_and_are_of_one_size(original: Path) -> None:
    paths = segment_paths(original)
    assert len(paths) > 3
    assert {path.stat().st_size for path in paths} == {SEGMENT_BYTES}
    assert read(original) == PAYLOADS


@pytest.mark.parametrize("at_once", [1, 7, 300])
async def test_a_batch_may_run_over_the_end_of_a_segment(tmp_path: Path, at_once: int) -> None:
    journal = open_journal(tmp_path)
    async with writing(journal) as calls:
        for start in range(0, len(PAYLOADS), at_once):
            for payload in PAYLOADS[start : start + at_once]:
                journal.append(payload)
            await calls.until_synced(journal.last_sequence)
    assert read(tmp_path) == PAYLOADS


async def test_a_segment_that_was_just_begun_may_be_empty(tmp_path: Path) -> None:
    """A stop between the start of a segment and its first record leaves it so."""
    await written(open_journal(tmp_path), PAYLOADS)
    journal = open_journal(tmp_path)
    journal.tail.begin_segment()
    await journal.close()
    assert read(tmp_path) == PAYLOADS
    await written(open_journal(tmp_path), [b"more"])
    assert read(tmp_path) == [*PAYLOADS, b"more"]


def contents_of(paths: list[Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths]


async def test_a_journal_of_version_1_continues_in_a_segment_of_version_2(tmp_path: Path) -> None:
    write_version_1(tmp_path, [PAYLOADS], SEGMENT_BYTES)
    older = segment_paths(tmp_path)
    before = contents_of(older)
    for number in range(3):
        await written(open_journal(tmp_path), [b"more %d" % number])
    assert contents_of(older) == before
    (newer,) = set(segment_paths(tmp_path)) - set(older)
    assert newer.read_bytes().startswith(b"FTJOURN2")
    assert read(tmp_path) == [*PAYLOADS, b"more 0", b"more 1", b"more 2"]
    assert [next(read_entries(tmp_path, after)).payload for after in (0, 80, 299, 300, 301)] == [
        PAYLOADS[0],
        PAYLOADS[80],
        PAYLOADS[299],
        b"more 0",
        b"more 1",
    ]


async def test_a_journal_of_version_1_that_is_only_opened_stays_as_it_is(tmp_path: Path) -> None:
    write_version_1(tmp_path, [PAYLOADS], SEGMENT_BYTES)
    before = contents_of(segment_paths(tmp_path))
    await written(open_journal(tmp_path), [])
    assert contents_of(segment_paths(tmp_path)) == before


async def test_an_empty_segment_of_version_1_is_replaced(tmp_path: Path) -> None:
    """A stop between the start of a segment and its first record leaves it so."""
    writer = Writer(tmp_path, SEGMENT_BYTES)
    writer.write(PAYLOADS[:5])
    writer.begin_segment()
    writer.mark()
    await written(open_journal(tmp_path), PAYLOADS[5:])
    assert read(tmp_path) == PAYLOADS


async def test_a_spare_that_was_left_behind_is_made_again(copy: Path) -> None:
    (copy / "spare").write_bytes(b"half of a spare")
    await written(open_journal(copy), PAYLOADS)
    assert read(copy) == PAYLOADS * 2


def fail_from_now_on(handle: int | None, target: str) -> None:
    """Redirect a file's handle to where nothing can be written, or written and not synced."""
    assert handle is not None
    failing = os.open("/dev/null", os.O_RDONLY if target == "write" else os.O_WRONLY)
    os.dup2(failing, handle)
    os.close(failing)


@pytest.fixture(params=["write", "sync"])
def target(request: pytest.FixtureRequest) -> str:
    """The failure: a file that takes nothing, or one that takes everything and cannot be synced."""
    failing: str = request.param
    return failing


@pytest.fixture(params=[ALWAYS_INLINE, NEVER_INLINE], ids=["inline", "by its thread"])
def inline(request: pytest.FixtureRequest) -> InlineLimits:
    """The limits by which one thread or the other writes."""
    limits: InlineLimits = request.param
    return limits


async def test_a_failing_write_or_sync_is_reported_once_and_ends_the_journal(
    tmp_path: Path, target: str, inline: InlineLimits
) -> None:
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES, inline=inline)
    async with writing(journal) as calls:
        journal.append(b"before")
        await calls.until_synced(1)
        fail_from_now_on(journal.tail.handle, target)
        journal.append(b"lost")
        failure = await calls.until_failed()
        journal.append(b"lost too")
        await asyncio.sleep(0.2)
    assert calls.synced == [1]
    assert calls.failures == [failure]
    assert str(failure).startswith("the journal has failed: OSError: ")
    assert read(tmp_path) == [b"before"]
    await written(open_journal(tmp_path), [b"after"])
    assert read(tmp_path) == [b"before", b"after"]


async def test_a_mark_that_cannot_be_written_ends_the_journal(tmp_path: Path, target: str) -> None:
    journal = open_journal(tmp_path)
    async with writing(journal) as calls:
        fail_from_now_on(journal.tail.mark_file.handle, target)
        journal.append(b"synced")
        await calls.until_synced(1)
        await calls.until_failed()
    assert read(tmp_path) == [b"synced"]


async def test_an_error_in_the_writer_is_reported_once_and_ends_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: InlineLimits
) -> None:
    def trip(_: object) -> None:
        raise RuntimeError("an invalid payload")

    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES, inline=inline)
    async with writing(journal) as calls:
        journal.append(b"before")
        await calls.until_synced(1)
        monkeypatch.setattr(journal.tail, "write", trip)
        journal.append(b"lost")
        failure = await calls.until_failed()
        journal.append(b"lost too")
        await asyncio.sleep(0.2)
    assert (calls.synced, calls.failures) == ([1], [failure])
    assert str(failure) == "the journal has failed: RuntimeError: an invalid payload"
    assert read(tmp_path) == [b"before"]


async def test_an_error_while_a_spare_is_filled_ends_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trip(*_: object) -> None:
        raise RuntimeError("a broken file system")

    journal = open_journal(tmp_path)
    monkeypatch.setattr(os, "posix_fallocate", trip)
    async with writing(journal) as calls:
        for payload in PAYLOADS:
            journal.append(payload)
        failure = await calls.until_failed()
    assert str(failure).startswith("the journal has failed: RuntimeError: ")
    kept = read(tmp_path)
    assert kept == PAYLOADS[: len(kept)]
    assert len(kept) >= (calls.synced[-1] if calls.synced else 0)


@pytest.mark.parametrize("file_bytes_max", [0, 4 * 1024, 8 * 1024 - 1])
def test_where_no_segment_can_be_created_synced_payloads_stay(
    tmp_path: Path, file_bytes_max: int
) -> None:
    """The files of the process may not grow, as on a full disk."""
    outcome = subprocess.run(
        [sys.executable, str(LIMITED), str(tmp_path), str(file_bytes_max)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    synced, failures, *cause = outcome.stdout.split()
    assert failures == "1"
    assert "File too large" in " ".join(cause)
    assert len(read(tmp_path)) >= int(synced)


async def test_the_mark_soon_covers_what_is_synced(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    calls = JournalCalls()
    journal.start(calls.on_synced, calls.on_failed)
    journal.append(b"x")
    await calls.until_synced(1)
    async with asyncio.timeout(60):
        while not journal.tail.is_marked:  # noqa: ASYNC110 - another thread's work
            await asyncio.sleep(0.01)
    await journal.close()


async def test_a_journal_that_is_always_busy_writes_its_mark_regularly(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, segment_bytes=1024 * 1024)
    async with writing(journal):
        async with asyncio.timeout(60):
            while journal.tail.mark_file.sequence == 0:
                journal.append(b"x" * 20)
                await asyncio.sleep(0.001)
    assert [entry.sequence for entry in read_entries(tmp_path)][-1] == journal.last_sequence


def test_a_damaged_journal_releases_its_folder(copy: Path) -> None:
    path = segment_paths(copy)[-1]
    raw = path.read_bytes()
    path.write_bytes(b"\xff" + raw[1:])
    with pytest.raises(JournalDamaged):
        open_journal(copy)
    path.write_bytes(raw)
    asyncio.run(open_journal(copy).close())


@pytest.mark.parametrize("payload", [b"", bytes(SEGMENT_BYTES - 4096)])
async def test_a_payload_that_no_segment_holds_raises(tmp_path: Path, payload: bytes) -> None:
    journal = open_journal(tmp_path)
    with pytest.raises(AssertionError):
        journal.append(payload)
    await journal.close()


async def test_the_largest_payload_is_kept_and_a_larger_one_changes_nothing(
    tmp_path: Path,
) -> None:
    """The journal has the product's settings: a segment would hold twice as much."""
    largest = bytes(PAYLOAD_BYTES_MAX)
    journal = FileJournal(tmp_path)
    async with writing(journal) as calls:
        with pytest.raises(AssertionError):
            journal.append(largest + b"\x01")
        assert journal.last_sequence == 0
        journal.append(largest)
        await calls.until_synced(1)
    assert [entry.payload == largest for entry in read_entries(tmp_path)] == [True]

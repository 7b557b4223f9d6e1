"""Syncs that fail: what a start reads from memory, it writes to the disk before anything follows."""

import os
from pathlib import Path

import pytest
from tests.journal.files.rig import SEGMENT_BYTES, open_journal, read
from tests.journal.files.version_1 import Writer
from tests.rigs.journals import ALWAYS_INLINE, NEVER_INLINE, writing, written
from tests.rigs.page_cache import CachedDisk

from foretell.journal.files.group_commit import InlineLimits
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.segments import find_end, segment_name, segment_paths

pytestmark = pytest.mark.anyio

FIRST, SECOND, THIRD, FOURTH = (b"%d" % number * 9_000 for number in range(1, 5))
"""Payloads of several pages each: a sync of one does not write all pages of the one before."""
LARGE = b"large" * 4_000


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CachedDisk:
    (tmp_path / "journal").mkdir()
    return CachedDisk(tmp_path / "journal", monkeypatch)


async def fail_to_sync(disk: CachedDisk, payload: bytes, file: str) -> None:
    """Append a payload to a journal whose next sync of a file fails, and stop as a process does then."""
    journal = FileJournal(disk.folder, segment_bytes=SEGMENT_BYTES, inline=ALWAYS_INLINE)
    async with writing(journal) as calls:
        disk.failing = {file}
        journal.append(payload)
        await calls.until_failed()
    assert not calls.synced
    assert not disk.failing


@pytest.mark.parametrize("payload", [SECOND, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("inline", [ALWAYS_INLINE, NEVER_INLINE], ids=["inline", "by its thread"])
async def test_a_frame_that_a_start_reads_after_a_failed_sync_is_on_the_disk_before_what_follows(
    disk: CachedDisk, payload: bytes, inline: InlineLimits
) -> None:
    await written(open_journal(disk.folder), [FIRST])
    await fail_to_sync(disk, payload, segment_name(1))
    journal = FileJournal(disk.folder, segment_bytes=2 * SEGMENT_BYTES, inline=inline)
    assert [entry.payload for entry in journal.entries()] == [FIRST, payload]
    await written(journal, [THIRD])
    disk.cut_power()
    assert read(disk.folder) == [FIRST, payload, THIRD]


async def test_a_frame_that_a_start_reads_is_on_the_disk_although_nothing_follows(
    disk: CachedDisk,
) -> None:
    """Its orders count from the start on: their users read them in answers and on the chain."""
    await written(open_journal(disk.folder), [FIRST])
    await fail_to_sync(disk, SECOND, segment_name(1))
    await written(open_journal(disk.folder), [])
    disk.cut_power()
    assert read(disk.folder) == [FIRST, SECOND]


async def test_a_start_that_cannot_sync_the_last_frame_is_refused_and_the_next_one_tries_again(
    disk: CachedDisk,
) -> None:
    await written(open_journal(disk.folder), [FIRST])
    await fail_to_sync(disk, SECOND, segment_name(1))
    for _ in range(2):
        disk.failing = {segment_name(1)}
        with pytest.raises(OSError, match="Input/output error"):
            open_journal(disk.folder)
    await written(open_journal(disk.folder), [])
    disk.cut_power()
    assert read(disk.folder) == [FIRST, SECOND]


async def test_zeros_over_a_write_that_was_cut_short_are_written_again_after_a_failed_sync(
    disk: CachedDisk,
) -> None:
    await written(open_journal(disk.folder), [FIRST])
    (path,) = segment_paths(disk.folder)
    handle = os.open(path, os.O_RDWR)
    os.pwrite(handle, b"\xaa" * 4_000, find_end(disk.folder).offset + 8_000)
    os.fdatasync(handle)
    os.close(handle)
    disk.failing = {path.name}
    with pytest.raises(OSError, match="Input/output error"):
        open_journal(disk.folder)
    await written(open_journal(disk.folder), [b"small"])
    disk.cut_power()
    assert read(disk.folder) == [FIRST, b"small"]
    assert not any(path.read_bytes()[find_end(disk.folder).offset :])


async def test_the_name_of_a_segment_whose_folder_was_not_synced_stays(disk: CachedDisk) -> None:
    """Without its name the file would be the spare, and the next start would overwrite it with zeros."""
    await written(open_journal(disk.folder), [FIRST, SECOND, THIRD])
    assert len(segment_paths(disk.folder)) == 1
    await fail_to_sync(disk, FOURTH, ".")
    assert len(segment_paths(disk.folder)) == 2
    await written(open_journal(disk.folder), [b"after"])
    disk.cut_power()
    assert read(disk.folder) == [FIRST, SECOND, THIRD, b"after"]


async def test_records_of_version_1_whose_sync_failed_are_on_the_disk_before_what_follows(
    disk: CachedDisk,
) -> None:
    """They are several in a write, and nothing says where it began."""
    writer = Writer(disk.folder, SEGMENT_BYTES)
    writer.write([FIRST])
    path = segment_paths(disk.folder)[0]
    before = path.read_bytes()
    writer.write([SECOND, THIRD])
    after = path.read_bytes()
    handle = os.open(path, os.O_RDWR)
    os.pwrite(handle, before, 0)
    os.fdatasync(handle)
    os.pwrite(handle, after, 0)
    disk.failing = {path.name}
    with pytest.raises(OSError, match="Input/output error"):
        os.fdatasync(handle)
    os.close(handle)
    await written(open_journal(disk.folder), [FOURTH])
    disk.cut_power()
    assert read(disk.folder) == [FIRST, SECOND, THIRD, FOURTH]

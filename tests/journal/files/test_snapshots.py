"""The files of snapshots: written completely or not at all, verified when read, removed in time."""

import asyncio
import os
import random
import shutil
from pathlib import Path

import pytest
from tests.journal.files.rig import overwrite
from tests.rigs.journals import written

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import SUFFIX as SEGMENT_SUFFIX
from foretell.journal.files.segments import chain_at, has_entries_after, segment_paths
from foretell.journal.files.snapshots import (
    ChainedSnapshot,
    check_snapshots,
    compact,
    newest_sequence,
    newest_snapshot,
    read_snapshot,
    snapshot_name,
    snapshot_paths,
    write_snapshot,
)
from foretell.journal.port import Snapshot

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 4 * 1024
PAYLOADS = [b"%d" % number * 120 for number in range(100)]
DAMAGES = 300


def put(folder: Path, sequence: int, payload: bytes = b"state" * 99) -> Path:
    chained = ChainedSnapshot(Snapshot(sequence, payload), chain_at(folder, sequence))
    return write_snapshot(folder, chained)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal of 100 entries in several segments, with snapshots after 40 and 80."""
    asyncio.run(written(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), PAYLOADS))
    put(tmp_path, 40)
    put(tmp_path, 80)
    return tmp_path


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def test_a_snapshot_is_read_as_it_was_written(folder: Path) -> None:
    path = put(folder, 99, b"payload")
    assert path.name == snapshot_name(99)
    assert read_snapshot(path) == ChainedSnapshot(Snapshot(99, b"payload"), chain_at(folder, 99))


def test_the_newest_intact_snapshot_is_chosen(folder: Path) -> None:
    assert newest_snapshot(folder) == Snapshot(80, b"state" * 99)
    assert newest_sequence(folder) == 80


def test_a_damaged_snapshot_is_skipped_for_the_one_before(folder: Path) -> None:
    damage(folder / snapshot_name(80))
    found = newest_snapshot(folder)
    assert found is not None
    assert found.sequence == 40


def test_when_all_are_damaged_the_whole_journal_is_replayed(folder: Path) -> None:
    damage(folder / snapshot_name(80))
    damage(folder / snapshot_name(40))
    assert newest_snapshot(folder) is None


def test_damaged_snapshots_and_a_missing_beginning_are_damage(folder: Path) -> None:
    assert compact(folder)
    damage(folder / snapshot_name(80))
    damage(folder / snapshot_name(40))
    with pytest.raises(JournalDamaged, match="incomplete"):
        newest_snapshot(folder)


def test_any_damage_to_a_snapshot_is_found(folder: Path) -> None:
    rng, path = random.Random(5), folder / snapshot_name(80)
    raw = path.read_bytes()
    for _ in range(DAMAGES):
        at, bit = rng.randrange(len(raw)), 1 << rng.randrange(8)
        overwrite(path, raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :])
        with pytest.raises(JournalDamaged):
            read_snapshot(path)


@pytest.mark.parametrize("kept_bytes", [0, 1, 39, 40, 71, 72, 100])
def test_a_snapshot_that_is_cut_short_is_found(folder: Path, kept_bytes: int) -> None:
    path = folder / snapshot_name(80)
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(JournalDamaged):
        read_snapshot(path)


def test_a_snapshot_under_the_name_of_another_is_damage(folder: Path) -> None:
    shutil.copy(folder / snapshot_name(40), folder / snapshot_name(60))
    with pytest.raises(JournalDamaged, match="does not belong to this snapshot"):
        read_snapshot(folder / snapshot_name(60))


async def test_a_snapshot_of_another_journal_is_skipped(folder: Path) -> None:
    other = folder / "other"
    payloads = [payload[::-1] + b"!" for payload in PAYLOADS]
    await written(FileJournal(other, segment_bytes=SEGMENT_BYTES), payloads)
    shutil.copy(put(other, 90), folder)
    assert newest_snapshot(folder) == Snapshot(80, b"state" * 99)


def test_another_name_for_a_snapshot_is_damage(folder: Path) -> None:
    shutil.copy(folder / snapshot_name(40), folder / "copy.snapshot")
    with pytest.raises(JournalDamaged, match="the file name is not a snapshot's"):
        snapshot_paths(folder)


def test_a_journal_that_ends_before_its_snapshot_has_lost_something(folder: Path) -> None:
    check_snapshots(folder, 80)
    with pytest.raises(JournalDamaged, match="later than the end of the journal, 79"):
        check_snapshots(folder, 79)


async def test_a_start_refuses_a_journal_that_ends_before_its_snapshot(folder: Path) -> None:
    for path in segment_paths(folder)[3:]:
        path.unlink()
    (folder / "synced").unlink()
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    with pytest.raises(JournalDamaged, match="later than the end of the journal"):
        journal.snapshot()
    await journal.close()


def test_only_the_segments_before_the_older_snapshot_are_removed(folder: Path) -> None:
    before = len(segment_paths(folder))
    gone = compact(folder)
    assert 0 < gone == before - len(segment_paths(folder))
    assert not has_entries_after(folder, 0)
    assert [entry.payload for entry in read_entries(folder, 40)] == PAYLOADS[40:]
    assert compact(folder) == 0


def test_older_snapshots_are_removed_too(folder: Path) -> None:
    put(folder, 90)
    compact(folder)
    assert [path.name for path in snapshot_paths(folder)] == [snapshot_name(80), snapshot_name(90)]


def test_of_a_journal_that_keeps_all_only_older_snapshots_are_removed(folder: Path) -> None:
    put(folder, 90)
    before = segment_paths(folder)
    assert compact(folder, keeps_all=True) == 0
    assert [path.name for path in snapshot_paths(folder)] == [snapshot_name(80), snapshot_name(90)]
    assert segment_paths(folder) == before


@pytest.mark.parametrize("sequence", [40, 80])
def test_while_one_of_the_two_is_damaged_nothing_is_removed(folder: Path, sequence: int) -> None:
    damage(folder / snapshot_name(sequence))
    before = sorted(folder.iterdir())
    assert compact(folder) == 0
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("stops_after", [0, 1])
def test_a_stop_while_segments_are_removed_leaves_no_gap(
    folder: Path, stops_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between two removals does this."""
    unlink = Path.unlink
    removed: list[Path] = []

    def unlink_some(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as Path has it
        if path.suffix == SEGMENT_SUFFIX and len(removed) == stops_after:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_some)
    with pytest.raises(KeyboardInterrupt):
        compact(folder)
    monkeypatch.undo()
    assert newest_snapshot(folder) == Snapshot(80, b"state" * 99)
    assert [entry.payload for entry in read_entries(folder, 40)] == PAYLOADS[40:]
    compact(folder)
    assert [entry.payload for entry in read_entries(folder, 40)] == PAYLOADS[40:]


def test_a_snapshot_that_cannot_be_written_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(folder.iterdir())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        put(folder, 90)
    assert sorted(folder.iterdir()) == before


async def test_the_remains_of_an_unfinished_snapshot_are_removed_at_the_next_start(
    folder: Path,
) -> None:
    left = folder / f"{snapshot_name(90)}.77.part"
    left.write_bytes(b"half")
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    assert not left.exists()
    assert journal.snapshot() == Snapshot(80, b"state" * 99)
    await journal.close()


def test_the_chain_of_a_sequence_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(JournalDamaged, match="sequence 101 is not in it"):
        chain_at(folder, 101)
    compact(folder)
    with pytest.raises(JournalDamaged, match="the segment of sequence 2 is missing"):
        chain_at(folder, 1)


async def test_a_snapshot_of_a_sequence_that_is_not_durable_raises(folder: Path) -> None:
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    with pytest.raises(AssertionError):
        await journal.keep_snapshot(Snapshot(101, b"x"))
    await journal.close()

"""The process that makes a snapshot by a replay."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.build import TOKEN, a_buy, a_placing, an_open_market, some_funds
from tests.domain.digest import digest
from tests.journal.conftest import written

from foretell.domain.commands import Command, encode_command
from foretell.domain.fold import apply
from foretell.domain.snapshot import decode_state
from foretell.domain.state import State
from foretell.domain.storage_errors import JournalDamaged
from foretell.journal import snapshotting
from foretell.journal.file import FileJournal
from foretell.journal.port import Snapshot
from foretell.journal.reading import fold
from foretell.journal.segments import segment_paths
from foretell.journal.snapshots import PART_SUFFIX, newest_snapshot, snapshot_name
from foretell.journal.snapshotting import take_snapshot

COMMANDS: list[Command] = [
    an_open_market(),
    some_funds("alice"),
    *(a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt))) for salt in range(100)),
]


def state_after(count: int) -> str:
    state = State()
    for command in COMMANDS[:count]:
        apply(state, command)
    return digest(state)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal of 102 commands."""
    journal = FileJournal(tmp_path, segment_bytes=16 * 1024)
    asyncio.run(written(journal, [encode_command(command) for command in COMMANDS]))
    return tmp_path


@pytest.mark.parametrize("until", [1, 2, 50, 102])
def test_a_snapshot_is_the_state_after_its_sequence(folder: Path, until: int) -> None:
    assert take_snapshot(folder, until).name == snapshot_name(until)
    snapshot = newest_snapshot(folder)
    assert snapshot is not None
    assert snapshot.sequence == until
    assert digest(decode_state(snapshot.payload)) == state_after(until)


def test_the_next_snapshot_begins_with_the_one_before(folder: Path) -> None:
    """What came before the first one is gone, so it must."""
    take_snapshot(folder, 60)
    segment_paths(folder)[0].unlink()
    take_snapshot(folder, 102)
    snapshot = newest_snapshot(folder)
    assert snapshot is not None
    assert digest(decode_state(snapshot.payload)) == state_after(102)


def test_a_state_from_a_snapshot_and_the_rest_is_that_of_the_whole(folder: Path) -> None:
    take_snapshot(folder, 60)
    state, sequence = fold(folder, newest_snapshot(folder))
    assert (digest(state), sequence) == (state_after(102), 102)


def test_what_comes_after_its_sequence_is_not_looked_at(folder: Path) -> None:
    """Another process may just be writing it."""
    path = segment_paths(folder)[-1]
    raw = path.read_bytes().rstrip(b"\x00")
    path.write_bytes(raw[:-100] + b"\xff" * 400)
    take_snapshot(folder, 100)
    with pytest.raises(JournalDamaged):
        fold(folder, None)


def test_a_journal_that_ends_too_early_makes_no_snapshot(folder: Path) -> None:
    with pytest.raises(JournalDamaged, match="ends at 102, and 103 was durable"):
        take_snapshot(folder, 103)
    assert newest_snapshot(folder) is None


def started(folder: Path, until: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", snapshotting.__name__, str(folder), str(until)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )


def test_the_process_makes_one_while_another_has_the_folder(folder: Path) -> None:
    (folder / "lock").write_bytes(b"")
    with started(folder, 102) as process:
        assert process.wait(60) == 0
    assert isinstance(newest_snapshot(folder), Snapshot)


@pytest.mark.parametrize("until", [103, 10**6])
def test_the_process_says_in_one_line_why_it_made_none(folder: Path, until: int) -> None:
    with started(folder, until) as process:
        assert process.stderr is not None
        assert process.wait(60) == 1
        assert process.stderr.read().count("\n") == 1
    assert newest_snapshot(folder) is None


def test_the_process_ends_with_the_one_that_started_it(folder: Path) -> None:
    """It is held up, as by a long journal, and its standard input is closed, as by a kill."""
    fifo = folder / f"{'9' * 20}.journal"
    os.mkfifo(fifo)
    with started(folder, 10**6) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 1
    assert not list(folder.glob(f"*{PART_SUFFIX}"))

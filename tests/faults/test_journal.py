"""Real processes are killed and files damaged, and nothing acknowledged is lost.

`make faults` does the same many more times.
"""

import asyncio
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.rigs.digest import digest
from tests.rigs.disks import KINDS, Damage
from tests.rigs.journals import written
from tests.rigs.values import TOKEN, a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.errors.storage import JournalDamaged
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import Command, PlaceOrder, decode_command, encode_command
from foretell.domain.exchange.state import State
from foretell.journal import snapshot_process
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import ReplayedState, fold, read_entries
from foretell.journal.files.segments import MARK_NAME, find_end, segment_paths
from foretell.journal.files.snapshots import (
    check_snapshots,
    newest_snapshot,
    remove_parts,
    snapshot_name,
    snapshot_paths,
)
from foretell.journal.port import FileJournalAddress
from foretell.journal.snapshot_process import SnapshotJob, encode_job, take_snapshot
from foretell.journal.verify import first_sequence, verify

CYCLES = int(os.environ.get("FORETELL_TEST_CYCLES", "3"))
DAMAGES = int(os.environ.get("FORETELL_TEST_DAMAGES", "500"))
CALLS_MIN = 4
STOPPING = Path(__file__).with_name("stopping.py")
TRADER = Path(__file__).with_name("trader.py")
KILLED_WITHIN_S = 1.2
SNAPSHOT_WITHIN_S = 300.0
SEGMENT_BYTES = 16 * 1024


def trade_until_killed(
    folder: Path, first: int, delay_s: float, *, waits_for_snapshot: bool
) -> list[tuple[str, str]]:
    """Run a process that trades, kill it that long after its first order; return its reports.

    On a busy machine that may be before its first snapshot, which can be waited for.
    """
    with subprocess.Popen(
        [sys.executable, str(TRADER), str(folder), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(delay_s)
        give_up_at_s = time.monotonic() + SNAPSHOT_WITHIN_S
        while waits_for_snapshot and not snapshot_paths(folder):
            assert time.monotonic() < give_up_at_s
            time.sleep(0.01)
        process.kill()
        lines += [line for line in process.stdout if line.endswith("\n")]
    reported = [line.split() for line in lines]
    return [(word, order_id) for word, order_id in reported]


def started(folder: Path) -> ReplayedState:
    """Return the state that a start of the engine restores from the files."""
    find_end(folder)
    state, sequence = fold(folder, newest_snapshot(folder))
    check_snapshots(folder, sequence)
    return ReplayedState(state, sequence)


def check_acknowledged(state: State, reported: Mapping[str, set[str]]) -> None:
    """Check that acknowledged orders are there, and that only canceled ones are gone."""
    lost = {order_id for order_id in reported["placed"] if order_id not in state.placement_by_order}
    live = set(state.live_orders)
    assert lost == set()
    assert reported["canceled"] & live == set()
    assert reported["placed"] - reported["canceling"] <= live


def check_placed_once(folder: Path) -> None:
    after = first_sequence(folder) - 1
    commands = [decode_command(entry.payload) for entry in read_entries(folder, after)]
    counts = Counter(each.order_id for each in commands if isinstance(each, PlaceOrder))
    assert set(counts.values()) <= {1}


@pytest.mark.case("A-01")
def test_a_trader_that_is_killed_repeatedly_loses_and_doubles_nothing(
    tmp_path: Path, played: Callable[[int], None]
) -> None:
    """Its journal takes snapshots and removes segments all the time."""
    rng, folder = random.Random(CYCLES), tmp_path / "journal"
    reported: dict[str, set[str]] = {"placed": set(), "canceling": set(), "canceled": set()}
    count = 0
    for cycle in range(CYCLES):
        delay_s = rng.uniform(0, KILLED_WITHIN_S)
        is_last = cycle == CYCLES - 1
        reports = trade_until_killed(folder, cycle * 10**6, delay_s, waits_for_snapshot=is_last)
        for word, order_id in reports:
            reported[word].add(order_id)
            count += word == "placed"
        check_acknowledged(started(folder).state, reported)
        check_placed_once(folder)
    assert count == len(reported["placed"]) >= CYCLES
    assert newest_snapshot(folder) is not None
    assert verify(folder).last_sequence == started(folder).sequence
    played(CYCLES)


COMMANDS: list[Command] = [
    an_open_market(),
    some_funds("alice", "bob"),
    *(a_placing(a_sell("bob", price_ticks=40 + salt, salt=str(salt))) for salt in range(8)),
    *(a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt))) for salt in range(90)),
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of 100 commands in several segments, with snapshots after 40 and 80."""
    folder = tmp_path_factory.mktemp("original")
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    asyncio.run(written(journal, [encode_command(command) for command in COMMANDS]))
    take_snapshot(folder, 40)
    take_snapshot(folder, 80)
    return folder


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


@pytest.fixture(scope="module")
def last_digest() -> str:
    state = State()
    for command in COMMANDS:
        apply(state, command)
    return digest(state)


@pytest.mark.case("A-04")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_damage_anywhere_stops_the_start_or_changes_nothing(
    copy: Path, last_digest: str, played: Callable[[int], None], kind: Damage
) -> None:
    """A damaged snapshot is skipped, and a segment before it is not read: both are harmless."""
    rng = random.Random(f"{kind.__name__} {DAMAGES}")
    paths = [*segment_paths(copy), *snapshot_paths(copy), copy / MARK_NAME]
    outcomes: Counter[str] = Counter()
    for _ in range(math.ceil(DAMAGES / len(KINDS))):
        path = rng.choice(paths)
        raw = path.read_bytes()
        path.write_bytes(kind(rng, raw))
        outcomes[start_of(copy)] += 1
        path.write_bytes(raw)
    assert outcomes.keys() <= {"damaged", last_digest}
    assert outcomes["damaged"]
    played(outcomes.total())


def start_of(folder: Path) -> str:
    """Return the digest of the state that a start restores, or `damaged` when it refuses."""
    try:
        return digest(started(folder).state)
    except JournalDamaged:
        return "damaged"


@pytest.mark.case("A-03")
def test_a_snapshot_whose_process_is_killed_is_there_complete_or_not_at_all(
    copy: Path, last_digest: str
) -> None:
    rng = random.Random(CYCLES)
    wanted = SnapshotJob(address=FileJournalAddress(str(copy)), until=len(COMMANDS))
    for _ in range(CYCLES):
        with subprocess.Popen(
            [sys.executable, "-m", snapshot_process.__name__], stdin=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            process.stdin.write(encode_job(wanted))
            process.stdin.flush()
            time.sleep(rng.uniform(0.2, 0.8))
            process.kill()
        newest = newest_snapshot(copy)
        assert newest is not None
        assert newest.sequence in {80, len(COMMANDS)}
        assert start_of(copy) == last_digest
        (copy / snapshot_name(len(COMMANDS))).unlink(missing_ok=True)


NEVER = 10**6


def stop_at(call: int, task: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a task on a journal's files in a process that is killed before one of its calls."""
    return subprocess.run(
        [sys.executable, str(STOPPING), task, str(folder), str(call)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.case("A-03")
@pytest.mark.parametrize(("task", "newest"), [("snapshot", 80), ("compact", 100)])
def test_a_task_that_is_killed_at_any_call_leaves_the_restored_state_unchanged(
    copy: Path, tmp_path: Path, last_digest: str, task: str, newest: int
) -> None:
    """Repeated, it ends with the same files as if nothing had happened."""
    take_snapshot(copy, newest)
    whole = Path(shutil.copytree(copy, tmp_path / "whole"))
    calls = int(stop_at(NEVER, task, whole).stdout)
    assert calls >= CALLS_MIN
    for call in random.Random(CYCLES).sample(range(1, calls + 1), min(CYCLES, calls)):
        broken = Path(shutil.copytree(copy, tmp_path / f"broken {call}"))
        assert stop_at(call, task, broken).returncode == -signal.SIGKILL
        assert start_of(broken) == last_digest
        assert verify(broken).last_sequence == len(COMMANDS)
        assert stop_at(NEVER, task, broken).returncode == 0
        remove_parts(broken)
        assert names(broken) == names(whole)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())

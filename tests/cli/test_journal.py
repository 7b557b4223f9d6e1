"""`foretell journal`: a journal is checked, replayed and exported."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rigs.in_process import Call
from tests.rigs.journals import written
from tests.rigs.values import TOKEN, a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import Command, encode_command
from foretell.domain.exchange.snapshot import state_digest
from foretell.domain.exchange.state import State
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.segments import segment_paths
from foretell.journal.files.snapshots import compact, snapshot_name
from foretell.journal.snapshot_process import take_snapshot

COMMANDS: list[Command] = [
    an_open_market(),
    some_funds("alice", "bob"),
    a_placing(a_sell("bob", price_ticks=40)),
    *(a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt))) for salt in range(60)),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a journal of 63 commands and a snapshot."""
    folder = tmp_path / "journal"
    journal = FileJournal(folder, segment_bytes=16 * 1024)
    asyncio.run(written(journal, [encode_command(command) for command in COMMANDS]))
    take_snapshot(folder, 30)
    return tmp_path


def final_digest() -> str:
    state = State()
    for command in COMMANDS:
        apply(state, command)
    return state_digest(state)


def files_of(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / "journal").iterdir()}


def test_verify_prints_what_the_journal_holds(call: Call, data: Path) -> None:
    before = files_of(data)
    called = call("journal", "verify", "--data", str(data))
    assert (called.code, called.err) == (0, "")
    printed = " ".join(called.out.split())
    assert "sequences 1 to 63" in printed
    assert "records 63" in printed
    assert "snapshots 30" in printed
    assert files_of(data) == before


@pytest.mark.parametrize("command", ["verify", "replay", "export"])
def test_the_journal_of_an_engine_process_is_named_by_its_number(
    call: Call, data: Path, command: str
) -> None:
    of_the_only_one = call("journal", command, "--data", str(data)).out
    (data / "journal").rename(data / "journal-3")
    assert "there is no journal" in call("journal", command, "--data", str(data)).err
    called = call("journal", command, "--data", str(data), "--shard", "3")
    lines = [line for line in called.out.splitlines() if not line.startswith("records/s")]
    assert called.code == 0
    assert lines
    assert set(lines) <= set(of_the_only_one.splitlines())


def test_verify_says_where_a_record_is_damaged(call: Call, data: Path) -> None:
    path = segment_paths(data / "journal")[0]
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    called = call("journal", "verify", "--data", str(data))
    assert called.code == 1
    assert f"journal file {path.name} is damaged at byte 40" in called.err


def test_verify_finds_a_damaged_snapshot(call: Call, data: Path) -> None:
    path = data / "journal" / snapshot_name(30)
    path.write_bytes(path.read_bytes()[:-1])
    called = call("journal", "verify", "--data", str(data))
    assert called.code == 1
    assert f"{path.name} is damaged at byte 0: the snapshot is incomplete" in called.err


def test_verify_finds_a_snapshot_of_another_journal(call: Call, data: Path) -> None:
    folder = data / "other"
    commands = [*COMMANDS[:2], a_placing(a_sell("bob", price_ticks=41)), *COMMANDS[3:]]
    asyncio.run(written(FileJournal(folder), [encode_command(command) for command in commands]))
    foreign = take_snapshot(folder, 50)
    (data / "journal" / foreign.name).write_bytes(foreign.read_bytes())
    called = call("journal", "verify", "--data", str(data))
    assert called.code == 1
    assert "it belongs to another journal" in called.err


def test_verify_checks_a_journal_in_use_up_to_its_sync_mark(call: Call, data: Path) -> None:
    """Records after it may be half written."""
    path = segment_paths(data / "journal")[-1]
    raw = path.read_bytes().rstrip(b"\x00")
    path.write_bytes((raw + bytes(-len(raw) % 8)).ljust(16 * 1024, b"\xff"))
    lock = lock_folder(data / "journal")
    called = call("journal", "verify", "--data", str(data))
    unlock_folder(lock)
    assert called.code == 0
    assert "records after the last sync mark were not checked" in called.out
    assert call("journal", "verify", "--data", str(data)).code == 1


def test_verify_misses_a_record_before_the_sync_mark_of_a_journal_in_use(
    call: Call, data: Path
) -> None:
    segment_paths(data / "journal")[-1].unlink()
    lock = lock_folder(data / "journal")
    called = call("journal", "verify", "--data", str(data))
    unlock_folder(lock)
    assert called.code == 1
    assert "sequence 63 was synced and is missing" in called.err


@pytest.mark.parametrize(
    ("options", "begins", "records"),
    [(("--from-start",), "the start", "63"), ((), "the snapshot at 30", "33")],
)
def test_replay_ends_in_the_same_state_from_the_start_and_from_a_snapshot(
    call: Call, data: Path, options: tuple[str, ...], begins: str, records: str
) -> None:
    called = call("journal", "replay", "--data", str(data), *options)
    printed = " ".join(called.out.split())
    assert (called.code, called.err) == (0, "")
    assert f"from {begins}" in printed
    assert f"records {records}, the last of them 63" in printed
    assert f"state {final_digest()}" in printed


def test_replay_says_that_the_first_commands_were_removed(call: Call, data: Path) -> None:
    take_snapshot(data / "journal", 60)
    assert compact(data / "journal")
    called = call("journal", "replay", "--data", str(data), "--from-start")
    assert called.code == 1
    assert "the segment of sequence 1 is missing" in called.err
    assert final_digest() in call("journal", "replay", "--data", str(data)).out


def exported(data: Path, *options: str) -> list[dict[str, object]]:
    ran = subprocess.run(
        [sys.executable, "-m", "foretell", "journal", "export", "--data", str(data), *options],
        capture_output=True,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_export_writes_every_command_with_the_names_of_its_fields(data: Path) -> None:
    lines = exported(data)
    assert [line["sequence"] for line in lines] == list(range(1, 64))
    assert lines[0]["command"] == "open"
    assert lines[0]["condition_id"] == an_open_market().condition_id
    placing = COMMANDS[2]
    placed = lines[2]
    order = placed["order"]
    assert isinstance(order, dict)
    assert placed["order_type"] == "GTC"
    assert (order["side"], order["signature_type"]) == ("SELL", "EOA")
    assert order["signature"] == "0x" + placing.order.signature.hex()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "sequences"),
    [
        (("--from", "60"), [60, 61, 62, 63]),
        (("--to", "2"), [1, 2]),
        (("--from", "5", "--to", "6"), [5, 6]),
        (("--from", "64"), []),
    ],
)
def test_export_writes_the_range_that_is_named(
    data: Path, options: tuple[str, ...], sequences: list[int]
) -> None:
    assert [line["sequence"] for line in exported(data, *options)] == sequences


def test_export_begins_with_the_oldest_command_kept(data: Path) -> None:
    take_snapshot(data / "journal", 60)
    compact(data / "journal")
    first = int(segment_paths(data / "journal")[0].stem)
    assert first > 1
    assert exported(data)[0]["sequence"] == first


def test_a_reader_of_the_export_may_close_it(data: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "foretell", "journal", "export", "--data", str(data)],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")

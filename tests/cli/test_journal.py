"""`foretell journal`: looking at a journal from the outside."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rigs.commands import Call
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


def test_verify_says_what_there_is(call: Call, data: Path) -> None:
    before = files_of(data)
    called = call("journal", "verify", "--data", str(data))
    assert (called.code, called.err) == (0, "")
    said = " ".join(called.out.split())
    assert "sequences 1 to 63" in said
    assert "records 63" in said
    assert "snapshots 30" in said
    assert files_of(data) == before


@pytest.mark.parametrize("command", ["verify", "replay", "export"])
def test_the_journal_of_an_engine_apart_is_named_by_its_number(
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
    assert f"{path.name} is damaged at byte 0: the snapshot is not whole" in called.err


def test_verify_finds_a_snapshot_of_another_journal(call: Call, data: Path) -> None:
    folder = data / "other"
    commands = [*COMMANDS[:2], a_placing(a_sell("bob", price_ticks=41)), *COMMANDS[3:]]
    asyncio.run(written(FileJournal(folder), [encode_command(command) for command in commands]))
    stranger = take_snapshot(folder, 50)
    (data / "journal" / stranger.name).write_bytes(stranger.read_bytes())
    called = call("journal", "verify", "--data", str(data))
    assert called.code == 1
    assert "it is of another journal" in called.err


def test_verify_looks_at_a_journal_in_use_as_far_as_its_mark_vouches(
    call: Call, data: Path
) -> None:
    """What comes after is half written."""
    path = segment_paths(data / "journal")[-1]
    raw = path.read_bytes().rstrip(b"\x00")
    path.write_bytes((raw + bytes(-len(raw) % 8)).ljust(16 * 1024, b"\xff"))
    lock = lock_folder(data / "journal")
    called = call("journal", "verify", "--data", str(data))
    unlock_folder(lock)
    assert called.code == 0
    assert "what came after the last mark was not looked at" in called.out
    assert call("journal", "verify", "--data", str(data)).code == 1


def test_verify_misses_what_the_mark_vouches_for_in_a_journal_in_use(
    call: Call, data: Path
) -> None:
    segment_paths(data / "journal")[-1].unlink()
    lock = lock_folder(data / "journal")
    called = call("journal", "verify", "--data", str(data))
    unlock_folder(lock)
    assert called.code == 1
    assert "sequence 63 was synced and is gone" in called.err


@pytest.mark.parametrize(
    ("options", "begins", "records"),
    [(("--from-start",), "the start", "63"), ((), "the snapshot at 30", "33")],
)
def test_replay_ends_in_the_same_state_from_anywhere(
    call: Call, data: Path, options: tuple[str, ...], begins: str, records: str
) -> None:
    called = call("journal", "replay", "--data", str(data), *options)
    said = " ".join(called.out.split())
    assert (called.code, called.err) == (0, "")
    assert f"from {begins}" in said
    assert f"records {records}, the last of them 63" in said
    assert f"state {final_digest()}" in said


def test_replay_from_a_start_that_was_let_go_says_so(call: Call, data: Path) -> None:
    take_snapshot(data / "journal", 60)
    assert compact(data / "journal")
    called = call("journal", "replay", "--data", str(data), "--from-start")
    assert called.code == 1
    assert "the segment of sequence 1 is gone" in called.err
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
def test_export_writes_what_was_asked_for(
    data: Path, options: tuple[str, ...], sequences: list[int]
) -> None:
    assert [line["sequence"] for line in exported(data, *options)] == sequences


def test_export_begins_with_what_is_kept(data: Path) -> None:
    take_snapshot(data / "journal", 60)
    compact(data / "journal")
    first = int(segment_paths(data / "journal")[0].stem)
    assert first > 1
    assert exported(data)[0]["sequence"] == first


def test_a_reader_of_the_export_may_stop_reading(data: Path) -> None:
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

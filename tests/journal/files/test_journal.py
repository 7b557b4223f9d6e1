import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rigs.disks import KINDS, Damage
from tests.rigs.journals import JournalCalls, writing, written

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import MARK_NAME, SECTOR_BYTES, find_end, segment_paths
from foretell.journal.framing import PAYLOAD_BYTES_MAX, encode_record, next_chain

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 4 * 1024
DAMAGES = 3_000
LIMITED = Path(__file__).with_name("limited.py")
PAYLOADS = [
    random.Random(number).randbytes(random.Random(number).choice((5, 90, 300, 1_300)))
    for number in range(60)
]


def open_journal(folder: Path) -> FileJournal:
    return FileJournal(folder, segment_bytes=SEGMENT_BYTES)


def read(folder: Path) -> list[bytes]:
    """Return the payloads of a journal, as a start reads them."""
    find_end(folder)
    return [entry.payload for entry in read_entries(folder)]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of several segments that was closed."""
    folder = tmp_path_factory.mktemp("original")
    asyncio.run(written(open_journal(folder), PAYLOADS))
    return folder


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


async def test_segments_follow_each_other_and_are_of_one_size(original: Path) -> None:
    paths = segment_paths(original)
    assert len(paths) > 5
    assert {path.stat().st_size for path in paths} == {SEGMENT_BYTES}
    assert read(original) == PAYLOADS


@pytest.mark.parametrize("at_once", [1, 7, 60])
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


async def test_a_spare_that_was_left_behind_is_made_again(copy: Path) -> None:
    (copy / "spare").write_bytes(b"half of a spare")
    await written(open_journal(copy), PAYLOADS)
    assert read(copy) == PAYLOADS * 2


def torn_after(folder: Path, payload: bytes, kept_bytes: int) -> int:
    """Write the next record as if it was cut short; return where it begins."""
    end = find_end(folder)
    assert end.path is not None
    chain = next_chain(end.chain, payload)
    record = encode_record(end.sequence + 1, end.sequence, chain, payload)
    raw = bytearray(end.path.read_bytes())
    raw[end.offset : end.offset + kept_bytes] = record[:kept_bytes]
    end.path.write_bytes(raw)
    return end.offset


@pytest.fixture
async def short(tmp_path: Path) -> Path:
    """A journal with one record, and room for another in the same segment."""
    await written(open_journal(tmp_path / "short"), [b"first" * 10])
    return tmp_path / "short"


TORN = b"\xaa" * 1_500
TORN_BYTES = 40 + len(TORN)


async def test_a_record_cut_short_at_any_byte_is_dropped_or_stops_the_start(short: Path) -> None:
    """A disk writes whole sectors, so a start must accept a cut between two of them.

    A cut inside a sector is the same as a damaged record unless a later sector is missing as well.
    """
    (path,) = segment_paths(short)
    untorn = path.read_bytes()
    offset = find_end(short).offset
    stops = []
    for kept_bytes in range(TORN_BYTES):
        path.write_bytes(untorn)
        torn_after(short, TORN, kept_bytes)
        if check_damage(short, [b"first" * 10], offset):
            stops.append(kept_bytes)
    last_sector = (offset + TORN_BYTES) // SECTOR_BYTES * SECTOR_BYTES - offset
    within_the_length = range(1, 4)
    assert set(stops) <= {*within_the_length, *range(last_sector + 1, TORN_BYTES)}
    assert not [kept_bytes for kept_bytes in stops if (offset + kept_bytes) % SECTOR_BYTES == 0]


@pytest.mark.parametrize("kept_bytes", [0, 30, 500, 1_000])
async def test_after_a_cut_the_journal_resumes_as_if_nothing_was_written(
    short: Path, kept_bytes: int
) -> None:
    torn_after(short, TORN, kept_bytes)
    journal = open_journal(short)
    assert journal.last_sequence == 1
    await written(journal, [b"second", b"third"])
    assert read(short) == [b"first" * 10, b"second", b"third"]


async def test_sectors_may_be_missing_anywhere_in_a_write_that_was_cut_short(short: Path) -> None:
    """A disk may keep the sectors of one write in any order."""
    (path,) = segment_paths(short)
    end = find_end(short)
    batch = bytearray()
    for number in range(3):
        chain = next_chain(end.chain, TORN[:700])
        record = encode_record(end.sequence + 1, 1, chain, TORN[:700])
        batch += record
        end = end._replace(sequence=end.sequence + 1, chain=chain, offset=end.offset + len(record))
        assert number < 3
    start = find_end(short).offset
    untorn = path.read_bytes()
    for sector in range(start // SECTOR_BYTES + 1, (start + len(batch)) // SECTOR_BYTES):
        raw = bytearray(untorn)
        raw[start : start + len(batch)] = batch
        raw[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = bytes(SECTOR_BYTES)
        path.write_bytes(raw)
        kept = read(short)
        assert kept[0] == b"first" * 10
        assert kept[1:] == [TORN[:700]] * (len(kept) - 1)


def damage_of(folder: Path) -> JournalDamaged | list[bytes]:
    """Return the payloads of a journal, or its damage."""
    try:
        return read(folder)
    except JournalDamaged as damage:
        return damage


def check_damage(folder: Path, payloads: list[bytes] = PAYLOADS, offset: int | None = None) -> bool:
    """Read a damaged journal: everything is there, or the damage is found. Return whether it is."""
    found = damage_of(folder)
    if isinstance(found, JournalDamaged):
        assert found.details["file"]
        assert found.details["offset"] >= 0
        assert offset in {None, found.details["offset"]}
        return True
    assert found == payloads
    return False


def test_a_flip_of_any_byte_is_found_or_loses_nothing(original: Path, copy: Path) -> None:
    found = 0
    for path in (*segment_paths(copy)[:2], copy / MARK_NAME):
        raw = path.read_bytes()
        for at in range(len(raw)):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << at % 8]) + raw[at + 1 :])
            found += check_damage(copy)
        path.write_bytes(raw)
    assert found > SEGMENT_BYTES
    assert read(copy) == read(original)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_damage_anywhere_is_found_or_loses_nothing(copy: Path, kind: Damage) -> None:
    rng = random.Random(kind.__name__)
    paths = [*segment_paths(copy), copy / MARK_NAME]
    found = 0
    for _ in range(DAMAGES // len(KINDS)):
        path = rng.choice(paths)
        raw = path.read_bytes()
        path.write_bytes(kind(rng, raw))
        found += check_damage(copy)
        path.write_bytes(raw)
    assert found > 10


def test_a_missing_segment_is_detected(copy: Path) -> None:
    for path in segment_paths(copy):
        hidden = path.rename(copy / "hidden")
        assert check_damage(copy)
        hidden.rename(path)
    assert not check_damage(copy)


def test_segments_that_changed_places_are_found(copy: Path) -> None:
    paths = segment_paths(copy)
    contents = [path.read_bytes() for path in paths]
    for one, other in zip(range(len(paths)), range(1, len(paths)), strict=False):
        paths[one].write_bytes(contents[other])
        paths[other].write_bytes(contents[one])
        assert check_damage(copy)
        paths[one].write_bytes(contents[one])
        paths[other].write_bytes(contents[other])


async def test_a_segment_of_another_journal_is_found(copy: Path, tmp_path: Path) -> None:
    await written(open_journal(tmp_path / "other"), [payload[::-1] for payload in PAYLOADS])
    for path, other in zip(segment_paths(copy), segment_paths(tmp_path / "other"), strict=True):
        raw = path.read_bytes()
        path.write_bytes(other.read_bytes())
        assert check_damage(copy)
        path.write_bytes(raw)


def test_only_a_batch_that_nothing_states_to_be_synced_may_be_dropped(
    copy: Path, tmp_path: Path
) -> None:
    """The mark and every record cover all but the last batch, which is damaged."""
    vouched = asyncio.run(_with_an_uncovered_batch(tmp_path / "unmarked", copy))
    rng = random.Random(7)
    (path,) = segment_paths(copy)[-1:]
    raw = path.read_bytes()
    outcomes: set[tuple[bytes, ...] | None] = set()
    for _ in range(600):
        kind = rng.choice(KINDS)
        path.write_bytes(kind(rng, raw))
        kept = damage_of(copy)
        path.write_bytes(raw)
        outcomes.add(tuple(kept) if isinstance(kept, list) else None)
    everything = (*PAYLOADS, *UNCOVERED)
    assert {None, everything} < outcomes
    assert outcomes <= {None, *(everything[: vouched + lasting] for lasting in range(3))}


UNCOVERED = [b"\x55" * 700, b"\x66" * 900]


async def _with_an_uncovered_batch(before: Path, folder: Path) -> int:
    """Append a batch and put the mark back to before it; return the sequence of the mark."""
    shutil.copytree(folder, before)
    journal = open_journal(folder)
    async with writing(journal) as calls:
        for payload in UNCOVERED:
            journal.append(payload)
        await calls.until_synced(journal.last_sequence)
    shutil.copy(before / MARK_NAME, folder)
    return len(PAYLOADS)


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


async def test_a_failing_write_or_sync_is_reported_once_and_ends_the_journal(
    tmp_path: Path, target: str
) -> None:
    journal = open_journal(tmp_path)
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trip(_: object) -> None:
        raise RuntimeError("an invalid payload")

    journal = open_journal(tmp_path)
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
    async with asyncio.timeout(5):
        while not journal.tail.is_marked:  # noqa: ASYNC110 - another thread's work
            await asyncio.sleep(0.01)
    await journal.close()


async def test_a_journal_that_is_always_busy_writes_its_mark_regularly(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, segment_bytes=1024 * 1024)
    async with writing(journal):
        async with asyncio.timeout(10):
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


@pytest.mark.parametrize("payload", [b"", bytes(SEGMENT_BYTES)])
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

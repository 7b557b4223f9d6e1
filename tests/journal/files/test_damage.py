"""Damages of journals that each version wrote: found, or without effect."""

import asyncio
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.journal.files.rig import PAYLOADS, WRITERS, open_journal, overwrite, read
from tests.journal.files.version_1 import encode_record, write_version_1
from tests.rigs.disks import KINDS, SECTOR_BYTES, Damage
from tests.rigs.journals import writing, written

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.frames import FrameEncoder, frame_start
from foretell.journal.files.segments import MARK_NAME, End, find_end, segment_paths
from foretell.journal.framing import next_chain

pytestmark = pytest.mark.anyio

DAMAGES = 1_400
FLIPPED_EVERY = 17
SHORT_SEGMENT_BYTES = 64 * 1024
FIRST = b"first" * 10


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


@pytest.mark.case("A-04")
def test_a_flip_of_any_byte_is_found_or_loses_nothing(original: Path, copy: Path) -> None:
    found, tried = 0, 0
    newest = segment_paths(copy)[-1]
    for path in (segment_paths(copy)[0], newest, copy / MARK_NAME):
        raw = path.read_bytes()
        for at in range(0, len(raw), FLIPPED_EVERY):
            overwrite(path, raw[:at] + bytes([raw[at] ^ 1 << at % 8]) + raw[at + 1 :])
            found += check_damage(copy)
            tried += 1
        overwrite(path, raw)
    assert found > tried // 2
    assert read(copy) == read(original)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_damage_anywhere_is_found_or_loses_nothing(copy: Path, kind: Damage) -> None:
    rng = random.Random(kind.__name__)
    paths = [*segment_paths(copy), copy / MARK_NAME]
    found = 0
    for _ in range(DAMAGES // len(KINDS)):
        path = rng.choice(paths)
        raw = path.read_bytes()
        overwrite(path, kind(rng, raw))
        found += check_damage(copy)
        overwrite(path, raw)
    assert found > 10


def test_a_segment_that_is_gone_is_found(copy: Path) -> None:
    for path in segment_paths(copy):
        hidden = path.rename(copy / "hidden")
        assert check_damage(copy)
        hidden.rename(path)
    assert not check_damage(copy)


def test_segments_that_changed_places_are_found(copy: Path) -> None:
    paths = segment_paths(copy)
    contents = [path.read_bytes() for path in paths]
    for one, other in zip(range(len(paths)), range(1, len(paths)), strict=False):
        overwrite(paths[one], contents[other])
        overwrite(paths[other], contents[one])
        assert check_damage(copy)
        overwrite(paths[one], contents[one])
        overwrite(paths[other], contents[other])


@pytest.mark.parametrize("writer", WRITERS)
def test_a_segment_of_another_journal_is_found(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    WRITERS[writer](copy)
    monkeypatch.setattr("tests.journal.files.rig.PAYLOADS", [each[::-1] for each in PAYLOADS])
    WRITERS[writer](other)
    for path, foreign in zip(segment_paths(copy), segment_paths(other), strict=True):
        raw = path.read_bytes()
        overwrite(path, foreign.read_bytes())
        assert check_damage(copy)
        overwrite(path, raw)


@pytest.mark.case("A-04")
@pytest.mark.parametrize("uncovered", [[b"\x55" * 700, b"\x66" * 900], [b"\x55" * 700] * 30])
def test_only_a_batch_that_nothing_states_to_be_synced_may_be_dropped(
    copy: Path, tmp_path: Path, uncovered: list[bytes]
) -> None:
    """The mark and every record cover all but the last batch, which is damaged."""
    asyncio.run(append_uncovered(copy, tmp_path / "unmarked", uncovered))
    rng = random.Random(7)
    path = segment_paths(copy)[-1]
    raw = path.read_bytes()
    outcomes: set[tuple[bytes, ...] | None] = set()
    for _ in range(600):
        kind = rng.choice(KINDS)
        overwrite(path, kind(rng, raw))
        kept = damage_of(copy)
        overwrite(path, raw)
        outcomes.add(tuple(kept) if isinstance(kept, list) else None)
    everything = (*PAYLOADS, *uncovered)
    assert outcomes == {None, everything, tuple(PAYLOADS)}


async def append_uncovered(folder: Path, before: Path, payloads: list[bytes]) -> None:
    """Append a batch that is one frame, and put the mark back to before it."""
    shutil.copytree(folder, before)
    journal = open_journal(folder)
    journal.tail.begin_segment()
    async with writing(journal) as calls:
        for payload in payloads:
            journal.append(payload)
        await calls.until_synced(journal.last_sequence)
    assert calls.synced == [journal.last_sequence]
    shutil.copy(before / MARK_NAME, folder)


class Short(NamedTuple):
    """A journal with one record, and room for another write in the same segment."""

    folder: Path
    path: Path
    end: End
    untorn: bytes

    def write(self, payloads: list[bytes]) -> tuple[bytes, int]:
        """Return the bytes of the next write, without padding, and where they go."""
        if self.end.version == 1:
            return self._records(payloads), self.end.offset
        lengths = [len(payload) for payload in payloads]
        frame = FrameEncoder().encode(self.end.sequence + 1, self.end.chain, payloads, lengths)
        start = frame_start(self.end.offset, frame.length)
        return bytes(frame.padded[: frame.length]), start

    def _records(self, payloads: list[bytes]) -> bytes:
        raw, chain = b"", self.end.chain
        for sequence, payload in enumerate(payloads, self.end.sequence + 1):
            chain = next_chain(chain, payload)
            raw += encode_record(sequence, self.end.sequence, chain, payload)
        return raw.rstrip(b"\x00")

    def tear(self, payloads: list[bytes], kept_bytes: int) -> None:
        """Make the next write one that was cut short."""
        raw, start = self.write(payloads)
        after = self.untorn[start + kept_bytes :]
        overwrite(self.path, self.untorn[:start] + raw[:kept_bytes] + after)


@pytest.fixture(params=[1, 2])
async def short(request: pytest.FixtureRequest, tmp_path: Path) -> Short:
    folder = tmp_path / "short"
    if request.param == 1:
        write_version_1(folder, [[FIRST]], SHORT_SEGMENT_BYTES)
    else:
        await written(open_journal(folder, SHORT_SEGMENT_BYTES), [FIRST])
    (path,) = segment_paths(folder)
    return Short(folder, path, find_end(folder), path.read_bytes())


TORN = {"small": [b"\xaa" * 1_500], "large": [b"\xaa" * 17_000]}


def cuts(start: int, length: int) -> list[int]:
    """Return many places of a cut: all near the edges of sectors, and some between."""
    return [
        kept_bytes
        for kept_bytes in range(length)
        if kept_bytes < 50 or kept_bytes % 99 == 0 or (start + kept_bytes + 1) % SECTOR_BYTES < 3
    ]


@pytest.mark.case("A-04")
@pytest.mark.parametrize("torn", TORN)
async def test_a_write_cut_short_at_any_byte_is_dropped_or_stops_the_start(
    short: Short, torn: str
) -> None:
    """A disk writes whole sectors, so a start must accept a cut between two of them.

    A cut inside a sector looks like a damaged record unless a later sector is missing as well.
    """
    raw, start = short.write(TORN[torn])
    stops = []
    for kept_bytes in cuts(start, len(raw)):
        short.tear(TORN[torn], kept_bytes)
        if check_damage(short.folder, [FIRST], short.end.offset):
            stops.append(kept_bytes)
    last_sector = (start + len(raw)) // SECTOR_BYTES * SECTOR_BYTES - start
    within_the_length = range(1, 4)
    assert set(stops) <= {*within_the_length, *range(last_sector + 1, len(raw))}
    assert not [kept_bytes for kept_bytes in stops if (start + kept_bytes) % SECTOR_BYTES == 0]


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("kept_bytes", [0, 30, 500, 1_000])
async def test_after_a_cut_the_journal_resumes_as_if_nothing_was_written(
    short: Short, torn: str, kept_bytes: int
) -> None:
    short.tear(TORN[torn], kept_bytes)
    journal = open_journal(short.folder, SHORT_SEGMENT_BYTES)
    assert journal.last_sequence == 1
    await written(journal, [b"second", b"third" * 5_000])
    assert read(short.folder) == [FIRST, b"second", b"third" * 5_000]


@pytest.mark.parametrize("size", [700, 6_000])
async def test_sectors_may_be_missing_anywhere_in_a_write_that_was_cut_short(
    short: Short, size: int
) -> None:
    """A disk may keep the sectors of one write in any order."""
    payloads = [b"\xaa" * size] * 3
    raw, start = short.write(payloads)
    short.tear(payloads, len(raw))
    torn = short.path.read_bytes()
    sectors = range(start // SECTOR_BYTES + 1, (start + len(raw)) // SECTOR_BYTES)
    assert len(sectors) > 2
    for sector in sectors:
        missing = bytes_of(sector)
        overwrite(short.path, torn[: missing.start] + bytes(SECTOR_BYTES) + torn[missing.stop :])
        kept = read(short.folder)
        assert kept == [FIRST, *payloads[: len(kept) - 1]]
        assert len(kept) <= len(payloads)


def bytes_of(sector: int) -> range:
    return range(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES)

import zlib
from pathlib import Path

import pytest
from tests.journal.files.version_1 import encode_record

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.segments import (
    EMPTY,
    HEAD_BYTES,
    MARK_NAME,
    End,
    Mark,
    check_rest,
    encode_head,
    find_end,
    is_never_written,
    read_records,
    read_segment,
    segment_name,
    segment_paths,
)
from foretell.journal.framing import CHAIN_START, SECTOR_BYTES, next_chain


def a_segment(folder: Path, payloads: list[bytes], first: int = 1) -> tuple[Path, End]:
    """Write a segment of version 1."""
    raw = bytearray(encode_head(first, CHAIN_START, 1))
    end = End(folder / segment_name(first), HEAD_BYTES, first - 1, CHAIN_START, 1)
    for payload in payloads:
        chain = next_chain(end.chain, payload)
        record = encode_record(end.sequence + 1, end.sequence, chain, payload)
        raw += record
        end = End(end.path, end.offset + len(record), end.sequence + 1, chain, 1)
    path = folder / segment_name(first)
    path.write_bytes(raw + bytes(4096))
    return path, end


def test_a_name_is_the_first_sequence() -> None:
    assert segment_name(12) == "00000000000000000012.journal"


def test_segments_come_the_oldest_first(tmp_path: Path) -> None:
    for first in (900, 5, 1):
        (tmp_path / segment_name(first)).touch()
    (tmp_path / "spare").touch()
    assert [path.name for path in segment_paths(tmp_path)] == [
        segment_name(first) for first in (1, 5, 900)
    ]


@pytest.mark.parametrize("name", ["copy.journal", "1.journal", "00000000000000000001 (2).journal"])
def test_a_segment_of_another_name_is_damage(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(JournalDamaged, match="the file name is not a segment's"):
        segment_paths(tmp_path)


def test_a_segment_begins_with_its_own_header(tmp_path: Path) -> None:
    path, _ = a_segment(tmp_path, [b"a"], first=7)
    _, start = read_segment(path)
    assert start == End(path, HEAD_BYTES, 6, CHAIN_START, 1)
    other = path.rename(tmp_path / segment_name(8))
    with pytest.raises(JournalDamaged, match="the header does not belong to this segment"):
        read_segment(other)


@pytest.mark.parametrize("byte", range(HEAD_BYTES))
def test_a_header_with_another_byte_is_damage(tmp_path: Path, byte: int) -> None:
    path, _ = a_segment(tmp_path, [b"a"])
    raw = bytearray(path.read_bytes())
    raw[byte] ^= 0x10
    path.write_bytes(raw)
    with pytest.raises(JournalDamaged) as damage:
        read_segment(path)
    assert damage.value.details == {"file": path.name, "offset": 0}


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_names_the_version_of_what_follows(tmp_path: Path, version: int) -> None:
    path = tmp_path / segment_name(5)
    path.write_bytes(encode_head(5, CHAIN_START, version))
    _, start = read_segment(path)
    assert start == End(path, HEAD_BYTES, 4, CHAIN_START, version)


@pytest.mark.parametrize("magic", [b"FTJOURN0", b"FTJOURN3", b"FTJOURNX"])
def test_a_version_that_is_not_known_is_refused(tmp_path: Path, magic: bytes) -> None:
    head = magic + (1).to_bytes(8, "little") + CHAIN_START
    path = tmp_path / segment_name(1)
    path.write_bytes(head + zlib.crc32(head).to_bytes(4, "little") + bytes(4096))
    with pytest.raises(JournalDamaged, match=rf"cannot read its format, b'{magic.decode()}'"):
        read_segment(path)
    with pytest.raises(JournalDamaged):
        find_end(tmp_path)


def test_a_file_shorter_than_a_header_is_damage(tmp_path: Path) -> None:
    path = tmp_path / segment_name(1)
    path.write_bytes(encode_head(1, CHAIN_START)[:-1])
    with pytest.raises(JournalDamaged):
        read_segment(path)


def test_reading_ends_where_a_record_does_not_follow(tmp_path: Path) -> None:
    path, end = a_segment(tmp_path, [b"a", b"b"])
    other = encode_record(3, 0, CHAIN_START, b"of another chain")
    raw = path.read_bytes()
    path.write_bytes(raw[: end.offset] + other + raw[end.offset + len(other) :])
    buffer, start = read_segment(path)
    assert read_records(buffer, start)[0] == [b"a", b"b"]
    with pytest.raises(JournalDamaged, match="the record is damaged"):
        check_rest(buffer, end, is_newest=True)


def test_only_the_newest_segment_may_end_in_anything_but_zeros(tmp_path: Path) -> None:
    path, end = a_segment(tmp_path, [b"a" * 100])
    torn = encode_record(2, 1, next_chain(end.chain, b"x" * 2000), b"x" * 2000)[:700]
    buffer = bytearray(path.read_bytes())
    buffer[end.offset : end.offset + len(torn)] = torn
    check_rest(bytes(buffer), end, is_newest=True)
    with pytest.raises(JournalDamaged, match="a record is missing here"):
        check_rest(bytes(buffer), end, is_newest=False)


@pytest.mark.parametrize("payload_bytes", [10, 65_536 - 40, 131_072 - 40])
def test_a_later_record_that_states_a_lost_one_as_synced_is_damage(
    tmp_path: Path, payload_bytes: int
) -> None:
    """The lost record is all zeros, as if it was never written."""
    first, last = b"a" * 1000, b"b" * payload_bytes
    path, end = a_segment(tmp_path, [b"0"])
    chain = next_chain(end.chain, first)
    lost = encode_record(2, 1, chain, first)
    witness = encode_record(3, 2, next_chain(chain, last), last)
    raw = path.read_bytes()[: end.offset] + bytes(len(lost)) + witness + bytes(4096)
    with pytest.raises(JournalDamaged, match="a synced record is missing") as damage:
        check_rest(raw, end, is_newest=True)
    assert damage.value.details["offset"] == end.offset
    unknowing = encode_record(3, 1, next_chain(chain, last), last)
    raw = path.read_bytes()[: end.offset] + bytes(len(lost)) + unknowing + bytes(4096)
    check_rest(raw, end, is_newest=True)


def test_an_empty_folder_begins_at_sequence_one(tmp_path: Path) -> None:
    assert find_end(tmp_path) == EMPTY


def test_the_end_is_after_the_last_record(tmp_path: Path) -> None:
    _, end = a_segment(tmp_path, [b"a", b"b", b"c"])
    assert find_end(tmp_path) == end


def test_a_mark_ahead_of_the_records_is_damage(tmp_path: Path) -> None:
    _, end = a_segment(tmp_path, [b"a", b"b"])
    mark = Mark(tmp_path)
    mark.write(2)
    assert find_end(tmp_path) == end
    mark.write(3)
    mark.close()
    with pytest.raises(JournalDamaged, match="sequence 3 was synced and is missing"):
        find_end(tmp_path)


def test_a_mark_without_any_segment_is_damage(tmp_path: Path) -> None:
    mark = Mark(tmp_path)
    mark.write(1)
    mark.close()
    with pytest.raises(JournalDamaged, match="sequence 1 was synced and is missing"):
        find_end(tmp_path)


def test_a_mark_is_kept_in_two_slots_in_turn(tmp_path: Path) -> None:
    mark = Mark(tmp_path)
    seen = []
    for sequence in (5, 9, 12):
        mark.write(sequence)
        seen.append(Mark.read(tmp_path))
    mark.close()
    assert seen == [5, 9, 12]
    again = Mark(tmp_path)
    assert again.sequence == 12
    again.close()


@pytest.mark.parametrize("slot", [0, 1])
def test_a_mark_with_one_damaged_slot_still_has_the_other(tmp_path: Path, slot: int) -> None:
    mark = Mark(tmp_path)
    mark.write(5)
    mark.write(9)
    mark.close()
    path = tmp_path / MARK_NAME
    raw = bytearray(path.read_bytes())
    raw[slot * SECTOR_BYTES + 3] ^= 1
    path.write_bytes(raw)
    assert Mark.read(tmp_path) == (9, 5)[slot]


def test_a_mark_with_both_slots_damaged_is_damage(tmp_path: Path) -> None:
    mark = Mark(tmp_path)
    mark.write(5)
    mark.close()
    (tmp_path / MARK_NAME).write_bytes(b"\x07" * 2 * SECTOR_BYTES)
    with pytest.raises(JournalDamaged, match="both slots are damaged"):
        Mark.read(tmp_path)


@pytest.mark.parametrize("length", [0, 1, 65_536, 65_537, 200_000])
def test_bytes_were_never_written_while_all_of_them_are_zeros(length: int) -> None:
    zeros = bytes(length)
    assert is_never_written(zeros)
    assert is_never_written(b"written" + zeros, len(b"written"))
    assert not is_never_written(zeros + b"\1")
    assert not is_never_written(b"\1" + zeros)

import hashlib
import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.journal.files.frames import (
    BUFFER_BYTES,
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    LARGE_FRAME_BYTES,
    PAGE_BYTES,
    FrameEncoder,
    fits,
    fitting_count,
    frame_end,
    frame_length,
    frame_start,
    is_frame_cut_short,
    payload_bytes_max,
    read_frames,
    sequence_of_frame,
    synced_by_later_frames,
)
from foretell.journal.framing import ALIGNMENT, PAYLOAD_BYTES_MAX, SECTOR_BYTES, Run

CHAIN = bytes(range(16))
SMALL = [b"a" * 100, b"b" * 7]
LARGE = [b"c" * 900] * 20
REST = bytes(8 * PAGE_BYTES)

Batch = list[bytes]
some_payload = st.integers(1, 4_000).map(lambda size: bytes([1 + size % 255]) * size)
batches = st.lists(st.lists(some_payload, min_size=1, max_size=8), min_size=1, max_size=5)


def frame_of(payloads: Batch, sequence: int = 1, chain: bytes = CHAIN) -> tuple[bytes, bytes]:
    encoded = FrameEncoder().encode(sequence, chain, payloads, list(map(len, payloads)))
    return bytes(encoded.padded), encoded.chain


def length_of(payloads: Batch) -> int:
    return frame_length(len(payloads), sum(map(len, payloads)))


def written(frames: list[Batch], offset: int = 0) -> tuple[bytes, list[int]]:
    """Return the bytes of consecutive frames from an offset on, and where each begins."""
    encoder, raw, chain, starts, sequence = FrameEncoder(), bytearray(offset), CHAIN, [], 1
    for payloads in frames:
        start = frame_start(offset, length_of(payloads))
        frame = encoder.encode(sequence, chain, payloads, list(map(len, payloads)))
        raw, chain = raw[:offset].ljust(start, b"\x00") + frame.padded, frame.chain
        starts.append(start)
        sequence, offset = sequence + len(payloads), frame_end(start, length_of(payloads))
    return bytes(raw + REST), starts


def read(raw: bytes, offset: int = 0, until: int | None = None) -> Run:
    return read_frames(raw, Run([], 0, CHAIN, offset), until)


def flat(frames: list[Batch]) -> Batch:
    return [payload for payloads in frames for payload in payloads]


def test_a_frame_has_the_documented_layout() -> None:
    body = struct.pack("<QI", 7, 2) + struct.pack("<II", 3, 5) + b"onethree!"[:8]
    head = struct.pack("<II", 24 + len(body), zlib.crc32(body))
    chain = hashlib.sha256(CHAIN + head).digest()[:16]
    raw = head + chain + body
    assert frame_of([b"one", b"three"], 7) == (raw + bytes(-len(raw) % 8), chain)


def test_a_large_frame_is_padded_to_whole_pages() -> None:
    raw, _ = frame_of(LARGE)
    assert len(raw) == 5 * PAGE_BYTES
    assert not any(raw[length_of(LARGE) :])


def test_a_buffer_is_used_again_without_what_it_held_before() -> None:
    encoder = FrameEncoder()
    encoder.encode(1, CHAIN, [b"\xff" * 20_000], [20_000])
    again = encoder.encode(1, CHAIN, SMALL, list(map(len, SMALL)))
    assert bytes(again.padded) == frame_of(SMALL)[0]


@given(frames=batches, offset=st.integers(0, 700).map(lambda each: each * ALIGNMENT))
def test_frames_are_read_as_they_were_written(frames: list[Batch], offset: int) -> None:
    raw, starts = written(frames, offset)
    run = read(raw, offset)
    assert run.payloads == flat(frames)
    assert run.sequence == len(run.payloads)
    assert run.end == frame_end(starts[-1], length_of(frames[-1]))
    assert not any(raw[run.end :])


@given(frames=batches)
def test_large_frames_alone_begin_at_pages(frames: list[Batch]) -> None:
    _, starts = written(frames, 40)
    ends = [40, *map(frame_end, starts, map(length_of, frames))]
    for payloads, start, before in zip(frames, starts, ends, strict=False):
        is_large = length_of(payloads) >= LARGE_FRAME_BYTES
        assert start == (-(-before // PAGE_BYTES) * PAGE_BYTES if is_large else before)


@pytest.mark.parametrize("payload_bytes", [BUFFER_BYTES, PAYLOAD_BYTES_MAX])
def test_a_payload_longer_than_the_buffer_has_a_frame_to_itself(payload_bytes: int) -> None:
    frames = [SMALL, [b"x" * payload_bytes], SMALL]
    raw, _ = written(frames)
    assert read(raw).payloads == flat(frames)
    assert fitting_count([payload_bytes, 5], 0, 2 * FRAME_BYTES_MAX) == 1
    assert fitting_count([5, payload_bytes], 0, 2 * FRAME_BYTES_MAX) == 1


@pytest.mark.parametrize("until", [0, 1, 2, 3, 22, 23, 24])
def test_reading_ends_with_the_requested_sequence_also_within_a_frame(until: int) -> None:
    frames = [SMALL, LARGE, SMALL]
    run = read(written(frames)[0], until=until)
    assert run.payloads == flat(frames)[:until]
    assert run.sequence == until


def test_the_chain_within_a_frame_is_that_of_the_frame() -> None:
    raw, _ = written([SMALL, SMALL])
    chains = [read(raw, until=until).chain for until in range(5)]
    assert chains[0] == CHAIN
    assert chains[1] == chains[2] != chains[3] == chains[4]


def test_reading_goes_on_where_it_ended() -> None:
    frames = [SMALL, LARGE, SMALL, LARGE]
    raw, _ = written(frames)
    first = read(raw, until=len(SMALL))
    rest = read_frames(raw, first)
    assert first.payloads + rest.payloads == flat(frames)


@pytest.mark.parametrize(
    ("sequence", "chain", "is_next"),
    [(6, CHAIN, True), (5, CHAIN, False), (7, CHAIN, False), (6, bytes(16), False)],
)
def test_a_frame_follows_one_predecessor_only(sequence: int, chain: bytes, is_next: bool) -> None:  # noqa: FBT001 - a column of the table
    raw, _ = frame_of(SMALL, 7)
    run = read_frames(raw + REST, Run([], sequence, chain, 0))
    assert run.payloads == SMALL * is_next
    assert run.end == len(raw) * is_next


@given(frames=batches, data=st.data())
def test_a_flipped_bit_ends_the_reading_at_the_frame_before_it(
    frames: list[Batch], data: st.DataObject
) -> None:
    raw, starts = written(frames)
    begin = data.draw(st.integers(0, len(frames) - 1))
    end = frame_end(starts[begin], length_of(frames[begin]))
    at = data.draw(st.integers(starts[begin], end - 1))
    bit = data.draw(st.integers(0, 7))
    spoilt = bytearray(raw)
    spoilt[at] ^= 1 << bit
    assert read(bytes(spoilt)).payloads == flat(frames[:begin])


@pytest.mark.parametrize("at", [len(frame_of(SMALL)[0]), 1000, PAGE_BYTES - 1])
def test_between_a_small_and_a_large_frame_there_are_zeros_alone(at: int) -> None:
    raw, _ = written([SMALL, LARGE])
    assert read(raw[:at] + b"\x01" + raw[at + 1 :]).payloads == SMALL


@pytest.mark.parametrize("payloads", [SMALL, LARGE])
@pytest.mark.parametrize("moved_bytes", [-8, 8, 4096])
def test_a_frame_that_is_moved_is_not_read(payloads: Batch, moved_bytes: int) -> None:
    frame, _ = frame_of(payloads)
    raw = bytes(PAGE_BYTES + moved_bytes) + frame + REST
    assert read(raw, PAGE_BYTES).payloads == []


def test_a_frame_that_is_repeated_is_not_read_twice() -> None:
    frame, _ = frame_of(SMALL)
    assert read(frame + frame + REST).payloads == SMALL


@pytest.mark.parametrize("payloads", [SMALL, LARGE])
def test_a_part_of_a_frame_is_no_frame(payloads: Batch) -> None:
    whole, _ = frame_of([*payloads, b"\x01"])
    for kept_bytes in range(length_of([*payloads, b"\x01"])):
        assert sequence_of_frame(whole[:kept_bytes], 0) is None
        assert sequence_of_frame(whole[:kept_bytes] + REST, 0) is None
        assert read(whole[:kept_bytes] + REST).payloads == []


def test_a_frame_is_intact_whatever_is_before_it() -> None:
    raw, _ = frame_of(SMALL, 7)
    assert sequence_of_frame(b"more" + raw, 4) == 7


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES, FRAME_BYTES_MAX + 1, 2**32 - 1])
@pytest.mark.parametrize("count", [0, 1, 2, 2**32 - 1])
def test_an_impossible_header_is_no_frame(length: int, count: int) -> None:
    raw = bytearray(frame_of(SMALL)[0] + REST)
    raw[:4] = length.to_bytes(4, "little")
    raw[32:36] = count.to_bytes(4, "little")
    assert sequence_of_frame(bytes(raw), 0) is None
    assert read(bytes(raw)).payloads == []


def test_a_later_frame_proves_that_those_before_it_were_synced() -> None:
    frames = [SMALL, LARGE, SMALL, SMALL]
    raw, starts = written(frames)
    ends = [0, *map(frame_end, starts, map(length_of, frames))]
    proved = [synced_by_later_frames(raw, end) for end in ends]
    assert proved == [24, 24, 24, 24, 0]
    lost = raw[: starts[1]] + bytes(ends[2] - starts[1]) + raw[ends[2] :]
    assert read(lost).sequence == 2
    assert synced_by_later_frames(lost, read(lost).end) == 24


@pytest.mark.parametrize("payloads", [SMALL, [b"d" * 1_500, b"e" * 2_000], LARGE, [b"f" * 20_000]])
@pytest.mark.parametrize("offset", [40, 480, 504, 512, 3_000, 4_088, 4_096])
def test_a_frame_without_any_of_its_sectors_is_cut_short(payloads: Batch, offset: int) -> None:
    """A disk keeps the sectors of a write in any order; all of these places are possible."""
    before = b"\x99" * offset
    frame, _ = frame_of(payloads)
    start = frame_start(offset, length_of(payloads))
    end = start + length_of(payloads)
    raw = before + bytes(start - offset) + frame + REST
    assert not is_frame_cut_short(raw, offset)
    rng = random.Random(offset)
    sectors = range(start // SECTOR_BYTES, -(-end // SECTOR_BYTES))
    for _ in range(50):
        cut = bytearray(raw)
        for sector in rng.sample(sectors, rng.randint(1, len(sectors))):
            cut[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = bytes(SECTOR_BYTES)
        cut[:offset] = before
        assert is_frame_cut_short(bytes(cut), offset) or not any(cut[offset:])


@pytest.mark.parametrize("payloads", [[b"d" * 1_500, b"e" * 2_000], LARGE])
@pytest.mark.parametrize("offset", [40, 512, 3_000])
def test_a_frame_with_a_flipped_byte_is_not_cut_short(payloads: Batch, offset: int) -> None:
    frame, _ = frame_of(payloads)
    start = frame_start(offset, length_of(payloads))
    raw = b"\x99" * offset + bytes(start - offset) + frame + REST
    for at in range(start + 4, start + length_of(payloads)):
        spoilt = raw[:at] + bytes([raw[at] ^ 0x10]) + raw[at + 1 :]
        assert not is_frame_cut_short(spoilt, offset)


@pytest.mark.parametrize("payloads", [SMALL, LARGE])
def test_nothing_follows_a_frame_that_was_cut_short(payloads: Batch) -> None:
    """It is the only one that was not synced."""
    frame, _ = frame_of(payloads)
    cut = frame[:50] + bytes(len(frame) - 50)
    end = frame_end(0, length_of(payloads))
    assert is_frame_cut_short(cut + REST, 0) == (payloads is LARGE)
    assert not is_frame_cut_short(cut[:end] + bytes(2 * PAGE_BYTES) + b"\x01", 0)


@given(
    lengths=st.lists(st.integers(1, 6_000), min_size=1, max_size=20),
    offset=st.integers(0, 4_608).map(lambda each: each * ALIGNMENT),
)
def test_as_many_payloads_as_fit_go_into_a_frame(lengths: list[int], offset: int) -> None:
    segment_bytes = 9 * PAGE_BYTES
    count = fitting_count(lengths, offset, segment_bytes)
    assert count == 0 or fits(count, sum(lengths[:count]), offset, segment_bytes)
    assert count == len(lengths) or not fits(
        count + 1, sum(lengths[: count + 1]), offset, segment_bytes
    )


@pytest.mark.parametrize("segment_bytes", [pages * PAGE_BYTES for pages in (1, 2, 4, 5, 8)])
def test_the_longest_payload_fits_into_a_new_segment_and_a_longer_one_does_not(
    segment_bytes: int,
) -> None:
    longest = payload_bytes_max(40, segment_bytes)
    assert fits(1, longest, 40, segment_bytes)
    assert not fits(1, longest + 1, 40, segment_bytes)


def test_the_segments_of_the_product_take_the_longest_payload_of_all() -> None:
    assert payload_bytes_max(40, 16 * 1024 * 1024) == PAYLOAD_BYTES_MAX

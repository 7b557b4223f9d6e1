import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.files.version_1 import encode_record

from foretell.journal.files.records import HEADER_BYTES, Record, decode_record, read_run
from foretell.journal.framing import CHAIN_START, PAYLOAD_BYTES_MAX, Run, next_chain

CHAIN = bytes(range(16))


def test_a_record_has_the_documented_layout() -> None:
    raw = encode_record(7, 5, CHAIN, b"payload")
    rest = struct.pack("<QQ", 7, 5) + CHAIN + b"payload"
    head = struct.pack("<II", 47, zlib.crc32(rest))
    assert raw == head + rest + bytes(1)


@given(
    sequence=st.integers(1, 2**63),
    synced=st.integers(0, 2**63),
    payload=st.binary(min_size=1, max_size=2_000),
    before=st.binary(max_size=64),
)
def test_an_encoded_record_is_decoded(
    sequence: int, synced: int, payload: bytes, before: bytes
) -> None:
    raw = encode_record(sequence, synced, CHAIN, payload)
    assert len(raw) % 8 == 0
    end = len(before) + len(raw)
    record = Record(sequence, synced, CHAIN, payload, end)
    assert decode_record(before + raw + b"more", len(before)) == record


@given(payload=st.binary(min_size=1, max_size=300), data=st.data())
def test_a_flipped_bit_is_never_taken_for_a_record(payload: bytes, data: st.DataObject) -> None:
    raw = bytearray(encode_record(7, 5, CHAIN, payload))
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    assert decode_record(bytes(raw) + bytes(4096), 0) is None


@given(payload=st.binary(min_size=1, max_size=300), data=st.data())
def test_a_part_of_a_record_is_no_record(payload: bytes, data: st.DataObject) -> None:
    raw = encode_record(7, 5, CHAIN, payload + b"\x01")
    length = data.draw(st.integers(0, HEADER_BYTES + len(payload)))
    assert decode_record(raw[:length], 0) is None
    assert decode_record(raw[:length] + bytes(4096), 0) is None


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES, HEADER_BYTES + PAYLOAD_BYTES_MAX + 1])
def test_a_header_with_an_impossible_length_is_no_record(length: int) -> None:
    raw = bytearray(encode_record(7, 5, CHAIN, b"payload"))
    raw[:4] = length.to_bytes(4, "little")
    assert decode_record(bytes(raw), 0) is None


@pytest.mark.parametrize(
    ("sequence", "chain", "is_next"),
    [(6, CHAIN, True), (5, CHAIN, False), (7, CHAIN, False), (6, CHAIN_START, False)],
)
def test_a_record_follows_one_predecessor_only(sequence: int, chain: bytes, is_next: bool) -> None:  # noqa: FBT001 - a column of the table
    raw = encode_record(7, 5, next_chain(CHAIN, b"payload"), b"payload")
    run = read_run(raw, Run([], sequence, chain, 0))
    assert run.payloads == [b"payload"] * is_next
    assert run.end == len(raw) * is_next


def records_of(payloads: list[bytes]) -> bytes:
    raw, chain = b"", CHAIN
    for sequence, payload in enumerate(payloads, 1):
        chain = next_chain(chain, payload)
        raw += encode_record(sequence, 0, chain, payload)
    return raw


def read_one_by_one(raw: bytes) -> Run:
    run = Run([], 0, CHAIN, 0)
    while (record := decode_record(raw, run.end)) is not None:
        if (record.sequence, record.chain) != (
            run.sequence + 1,
            next_chain(run.chain, record.payload),
        ):
            break
        run = Run([*run.payloads, record.payload], record.sequence, record.chain, record.end)
    return run


@given(
    st.lists(st.binary(min_size=1, max_size=60), max_size=6),
    st.integers(0, 10**6),
    st.integers(0, 255),
    st.integers(0, 10**6),
)
def test_a_run_equals_its_records_read_one_by_one_also_when_damaged(
    payloads: list[bytes], place: int, byte: int, cut: int
) -> None:
    raw = bytearray(records_of(payloads) + bytes(64))
    raw[place % len(raw)] = byte
    spoilt = bytes(raw[: len(raw) - cut % len(raw)])
    assert read_run(spoilt, Run([], 0, CHAIN, 0)) == read_one_by_one(spoilt)


@pytest.mark.parametrize("until", [0, 1, 3])
def test_a_run_ends_with_the_requested_sequence(until: int) -> None:
    payloads = [b"a", b"bc", b"def"]
    run = read_run(records_of(payloads), Run([], 0, CHAIN, 0), until)
    assert (run.payloads, run.sequence) == (payloads[:until], until)

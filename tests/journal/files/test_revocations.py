"""The log of revoked keys: durable, whole, and refused when it is damaged."""

import threading
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import msgspec
import pytest

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.revocations import FILE, LoggedRevocation, RevocationLog

FIRST = LoggedRevocation(
    epoch="e",
    key_id="k",
    chain_id=1,
    address="0x" + "11" * 20,
    nonce="7",
    generation=2,
    created_at_ms=3,
    revoked_at_ms=4,
    signed_at_s=None,
)
SECOND = msgspec.structs.replace(FIRST, key_id="other", signed_at_s=9)


@pytest.fixture
def log(tmp_path: Path) -> RevocationLog:
    return RevocationLog(tmp_path)


def test_what_is_appended_is_read_in_order_by_a_later_start(
    log: RevocationLog, tmp_path: Path
) -> None:
    assert list(log.read()) == []
    log.append(FIRST)
    log.append(SECOND)
    assert list(RevocationLog(tmp_path).read()) == [FIRST, SECOND]
    assert FIRST.index == (1, FIRST.address, 7, 2)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_was_never_acknowledged(log: RevocationLog, tmp_path: Path) -> None:
    log.append(FIRST)
    whole = (tmp_path / FILE).read_bytes()
    for length in range(1, len(whole)):
        (tmp_path / FILE).write_bytes(whole + whole[:length])
        assert list(log.read()) == [FIRST]
        log.append(SECOND)
        assert list(log.read()) == [FIRST, SECOND]


def test_a_damaged_line_is_refused_with_its_place(log: RevocationLog, tmp_path: Path) -> None:
    log.append(FIRST)
    whole = (tmp_path / FILE).read_bytes()
    log.append(SECOND)
    damaged = bytearray((tmp_path / FILE).read_bytes())
    damaged[len(whole) + 20] ^= 1
    (tmp_path / FILE).write_bytes(damaged)
    with pytest.raises(JournalDamaged, match=f"at byte {len(whole)}"):
        list(log.read())


def test_a_disk_that_takes_a_part_of_a_line_keeps_nothing_of_it(
    log: RevocationLog, tmp_path: Path
) -> None:
    log.append(FIRST)
    bytes_max, before = (tmp_path / FILE).stat().st_size + 10, getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            log.append(SECOND)
    finally:
        setrlimit(RLIMIT_FSIZE, before)
    assert (tmp_path / FILE).stat().st_size == bytes_max - 10
    log.append(SECOND)
    assert list(log.read()) == [FIRST, SECOND]


def test_several_writers_append_whole_lines(tmp_path: Path) -> None:
    def write(name: int) -> None:
        for number in range(20):
            RevocationLog(tmp_path).append(
                msgspec.structs.replace(FIRST, key_id=f"{name} {number}")
            )

    writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    seen = {each.key_id for each in RevocationLog(tmp_path).read()}
    assert seen == {f"{name} {number}" for name in range(4) for number in range(20)}

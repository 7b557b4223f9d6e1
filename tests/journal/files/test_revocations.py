"""The log of revoked keys: durable, whole, and refused when it is damaged."""

import fcntl
import os
import signal
import threading
import time
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import msgspec
import pytest
from tests.rigs.page_cache import CachedDisk

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.revocations import (
    FILE,
    DeletedKind,
    LoggedDeletion,
    LoggedKey,
    LoggedRevocation,
    RevocationLog,
)
from foretell.runtime.files import write_atomically

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
SECOND = msgspec.structs.replace(FIRST, key_id="other", nonce="8", signed_at_s=9)
DELETED = LoggedDeletion(
    kind=DeletedKind.BUILDER,
    epoch="e",
    key_id="b",
    address=FIRST.address,
    salt="s",
    created_at_ms=3,
    deleted_at_ms=4,
)


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


def generations(count: int, **fields: str) -> list[LoggedRevocation]:
    return [
        msgspec.structs.replace(
            FIRST, key_id=f"g{number}", generation=number, revoked_at_ms=100 + number, **fields
        )
        for number in range(count)
    ]


def test_the_last_generation_of_each_index_stays_with_the_latest_times(
    log: RevocationLog, tmp_path: Path
) -> None:
    ahead = msgspec.structs.replace(FIRST, key_id="g0", generation=0, signed_at_s=77)
    others = generations(2, address="0x" + "22" * 20) + generations(1, epoch="lost")
    lines: list[LoggedKey] = [ahead, *generations(5)[1:], *others, DELETED, DELETED]
    for each in lines:
        log.append(each)
    assert log.compact(bytes_min=0) == 6
    last = msgspec.structs.replace(generations(5)[4], signed_at_s=77)
    assert list(log.read()) == [last, others[1], others[2], DELETED]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert log.compact(bytes_min=0) == 0


def test_a_small_log_and_one_with_few_needless_lines_stay_as_they_are(
    log: RevocationLog, tmp_path: Path
) -> None:
    assert log.compact(bytes_min=0) == 0
    lines: list[LoggedKey] = [*generations(2), SECOND, DELETED]
    for each in lines:
        log.append(each)
    before = (tmp_path / FILE).read_bytes()
    assert log.compact(bytes_min=0) == log.compact() == 0
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_process_that_is_killed_while_it_shortens_the_log_leaves_a_whole_one(
    log: RevocationLog, tmp_path: Path, step: str
) -> None:
    for each in generations(5):
        log.append(each)
    pid = os.fork()
    if pid == 0:
        owner = os if step == "fsync" else Path
        setattr(owner, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        log.compact(bytes_min=0)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert list(log.read()) == generations(5)
    log.append(SECOND)
    assert log.compact(bytes_min=0) == 4
    assert [each.key_id for each in log.read()] == ["g4", "other"]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_line_stays_whose_file_has_a_name_that_an_earlier_process_could_not_sync(
    log: RevocationLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = CachedDisk(tmp_path, monkeypatch)
    disk.failing = {"."}
    with pytest.raises(OSError, match="Input/output error"):
        log.append(FIRST)
    log.append(SECOND)
    disk.cut_power()
    assert list(log.read()) == [FIRST, SECOND]


def test_what_waits_for_the_lock_of_a_replaced_file_is_appended_to_the_new_one(
    log: RevocationLog, tmp_path: Path
) -> None:
    log.append(FIRST)
    former = os.open(tmp_path / FILE, os.O_RDWR)
    fcntl.flock(former, fcntl.LOCK_EX)
    waiting = threading.Thread(target=log.append, args=(SECOND,))
    waiting.start()
    wait_until_open(tmp_path / FILE, 2)
    write_atomically(tmp_path / FILE, (tmp_path / FILE).read_bytes())
    os.close(former)
    waiting.join()
    assert list(log.read()) == [FIRST, SECOND]


def wait_until_open(path: Path, count: int) -> None:
    """Return once this process has a file open so many times."""
    inode = path.stat().st_ino
    for _ in range(1_000):
        handles = [handle.stat() for handle in Path("/proc/self/fd").iterdir() if handle.exists()]
        if sum(each.st_ino == inode for each in handles) >= count:
            return
        time.sleep(0.01)
    pytest.fail("the other thread did not open the file")

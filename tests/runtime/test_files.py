import errno
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from foretell.runtime.files import PARTIAL_SUFFIX, write_atomically, write_synced


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_a_file_is_replaced_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"a longer content before")
    write_atomically(path, b"one part", b", another")
    assert (path.read_bytes(), mode_of(path)) == (b"one part, another", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


@pytest.mark.usefixtures("open_umask")
def test_a_draft_that_a_crash_left_is_replaced(tmp_path: Path) -> None:
    path, draft = tmp_path / "state", tmp_path / "draft"
    draft.write_bytes(b"a longer content that a crash left")
    write_atomically(path, b"new", draft=draft)
    assert (path.read_bytes(), mode_of(path), draft.exists()) == (b"new", 0o600, False)


def test_a_write_that_fails_leaves_the_old_content_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_atomically(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            write_atomically(path, bytes(4096))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_two_writers_of_a_file_have_drafts_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "state"
    other = tmp_path / f"state.of-another-writer{PARTIAL_SUFFIX}"
    write_synced(other, b"of another writer")
    write_atomically(path, b"ours")
    other.replace(path)
    assert path.read_bytes() == b"of another writer"

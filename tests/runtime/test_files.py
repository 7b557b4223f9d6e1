import errno
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from foretell.runtime.files import locked, write_atomically


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


def test_two_writers_of_a_file_have_drafts_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: one writer stops before its rename while another one writes; both finish whole."""
    path = tmp_path / "state"
    rename, between = Path.rename, []

    def rename_late(draft: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        write_atomically(path, b"of another writer")
        between.append(path.read_bytes())
        return draft.rename(target)

    monkeypatch.setattr(Path, "rename", rename_late)
    write_atomically(path, b"ours, which is longer than the other")
    assert between == [b"of another writer"]
    assert path.read_bytes() == b"ours, which is longer than the other"
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_a_locked_folder_is_entered_once_at_a_time(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with locked(tmp_path):
            entered.set()

    other = threading.Thread(target=enter)
    with locked(tmp_path):
        other.start()
        assert not entered.wait(0.1)
    assert entered.wait(60.0)
    other.join()

import os
import subprocess
import sys
from pathlib import Path

import pytest

from foretell.domain.errors.storage import FolderInUse
from foretell.journal.files.folder_lock import lock_folder, unlock_folder

HOLDING = """
import sys, time
from pathlib import Path
from foretell.journal.files.folder_lock import lock_folder
lock_folder(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_folder_is_locked_until_it_is_unlocked(tmp_path: Path) -> None:
    handle = lock_folder(tmp_path)
    with pytest.raises(FolderInUse, match=str(tmp_path)):
        lock_folder(tmp_path)
    unlock_folder(handle)
    unlock_folder(lock_folder(tmp_path))


@pytest.mark.case("A-08")
def test_a_folder_that_another_process_holds_is_refused_until_that_process_ends(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(FolderInUse):
            lock_folder(tmp_path)
        process.kill()
        process.wait()
    unlock_folder(lock_folder(tmp_path))


def test_a_lock_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    handle = lock_folder(tmp_path)
    assert os.fstat(handle).st_mode & 0o077 == 0
    unlock_folder(handle)

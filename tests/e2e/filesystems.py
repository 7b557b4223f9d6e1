"""A small file system of its own, really mounted, that a test fills.

Only root may mount. Another user runs the test again in a namespace in which it is root: nothing but the test
sees the mount, and it ends with it.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 64 * 1024
FILLER = "filler"
WITHIN_S = 900


class SmallFileSystem:
    """A mounted folder of bounded size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def free_bytes(self) -> int:
        """Return how many bytes may still be written."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def fill(self) -> None:
        """Leave no room for any file to grow."""
        with (self.folder / FILLER).open("ab", buffering=0) as filler:
            for size in (CHUNK_BYTES, 4096):
                with contextlib.suppress(OSError):
                    while filler.write(bytes(size)):
                        pass

    def make_room(self) -> None:
        """Have room again."""
        (self.folder / FILLER).unlink(missing_ok=True)


@contextlib.contextmanager
def small_file_system(folder: Path, bytes_max: int) -> Iterator[SmallFileSystem]:
    """Mount an empty file system of a size over a folder; it ends with the block."""
    folder.mkdir(exist_ok=True)
    command = ("mount", "-t", "tmpfs", "-o", f"size={bytes_max},mode=0700", "foretell", str(folder))
    subprocess.run(command, check=True)
    try:
        yield SmallFileSystem(folder)
    finally:
        subprocess.run(("umount", "-l", str(folder)), check=True)


def may_mount(folder: Path) -> bool:
    """Return whether this process may mount a file system over a folder."""
    try:
        with small_file_system(folder, CHUNK_BYTES):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def run_where_mounts_are_allowed(test: str) -> None:
    """Run a test by its id in a namespace in which this user may mount, and fail as it does."""
    command = ("unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m", "pytest")
    ended = subprocess.run(
        (*command, "-n", "0", "-q", test),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr

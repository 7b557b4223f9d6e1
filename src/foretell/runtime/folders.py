"""Folders: a renamed or new file survives a crash once its folder is synced, and needs room on its disk."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple


class DiskRoom(NamedTuple):
    """The disk of a folder, by the folder on it that exists: its size, and what a user may still write."""

    folder: Path
    total_bytes: int
    free_bytes: int


def disk_room(folder: Path) -> DiskRoom:
    """Return the room on the disk of a folder, which may not exist yet."""
    there = next(each for each in (folder, *folder.parents) if each.is_dir())
    usage = shutil.disk_usage(there)
    return DiskRoom(there, usage.total, usage.free)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

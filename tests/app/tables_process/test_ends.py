"""The ends of an engine's process and of its tables' process, in either order."""

import asyncio
import os
import random
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.app.tables_process.rig import SEGMENT_BYTES, SOON_S, a_tables_rig, until
from tests.rigs.killing import is_running

from foretell.app.tables_process.child import MODULE
from foretell.journal.files.journal import FileJournal
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PARENT = Path(__file__).with_name("parent.py")


PARENT_DIES: Final = (("parent", signal.SIGKILL),)
BOTH_DIE: Final = (("child", signal.SIGKILL), *PARENT_DIES)
CHILD_FREEZES: Final = (("child", signal.SIGSTOP), *PARENT_DIES)


async def trade_until(
    folder: Path, url: str, ends: Sequence[tuple[str, signal.Signals]], wait_s: float
) -> int:
    """Have a parent trade, send signals; return the id of its child when the parent is gone."""
    noted = folder.with_name("child")
    noted.unlink(missing_ok=True)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(PARENT), str(folder), url, str(noted)
    )
    await until(noted.exists)
    child = int(noted.read_text())
    await asyncio.sleep(wait_s)
    pid_by_name = {"parent": parent.pid, "child": child}
    for name, number in ends:
        os.kill(pid_by_name[name], number)
    await asyncio.wait_for(parent.wait(), SOON_S)
    return child


@pytest.mark.parametrize("ends", [PARENT_DIES, BOTH_DIE], ids=["parent", "both"])
async def test_a_parent_that_is_killed_at_any_time_loses_and_doubles_nothing(
    tmp_path: Path,
    database_file: Path,
    empty_database: Path,
    ends: Sequence[tuple[str, signal.Signals]],
) -> None:
    folder, url = tmp_path / "journal", f"sqlite+aiosqlite:///{database_file}"
    copied = Path(shutil.copy(empty_database, tmp_path / "empty.db"))
    rng = random.Random(1)
    for _ in range(2):
        await trade_until(folder, url, ends, rng.uniform(0, 0.5))
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    async with Database(url) as database, a_tables_rig(journal, database, copied) as rig:
        await rig.check()


async def test_the_tables_process_ends_with_its_parent(tmp_path: Path, database_file: Path) -> None:
    url = f"sqlite+aiosqlite:///{database_file}"
    child = await trade_until(tmp_path / "journal", url, PARENT_DIES, 0)
    await until(lambda: not is_running(child, MODULE))


@pytest.mark.case("J-02")
async def test_a_process_that_was_frozen_when_its_parent_died_writes_nothing_twice(
    tmp_path: Path, database_file: Path, empty_database: Path
) -> None:
    folder, url = tmp_path / "journal", f"sqlite+aiosqlite:///{database_file}"
    copied = Path(shutil.copy(empty_database, tmp_path / "empty.db"))
    old = await trade_until(folder, url, CHILD_FREEZES, 0.2)
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    async with Database(url) as database, a_tables_rig(journal, database, copied) as rig:
        os.kill(old, signal.SIGCONT)
        await rig.trade(100)
        await until(lambda: not is_running(old, MODULE))
        await rig.check()

"""One SQLite database that stays open: to open one, and to compile every statement anew, is slow."""

import asyncio
import contextlib
import copy
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Final

from foretell.store.database import Database
from foretell.store.topics import Topics

EMPTIED_WITHIN_S: Final = 10.0
LOOK_S: Final = 0.01


class SharedDatabase:
    """The database of a test process; each test finds it as empty as a new one."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template = template
        self._path = shutil.copy(template, folder / "foretell.db")
        self.database = Database(f"sqlite+aiosqlite:///{self._path}")

    async def emptied(self) -> Database:
        """Return the database with what is in the template, and with nobody who watches it."""
        await asyncio.to_thread(self._copy_template)
        database = copy.copy(self.database)
        database._topics = Topics()
        return database

    def _copy_template(self) -> None:
        """Copy it once the test before lets go of the file, which it does on the event loop."""
        give_up_at = time.monotonic() + EMPTIED_WITHIN_S

        def check(*_: int) -> None:
            assert time.monotonic() < give_up_at, "a test before keeps the database locked"

        with (
            contextlib.closing(sqlite3.connect(self._template)) as template,
            contextlib.closing(sqlite3.connect(self._path)) as present,
        ):
            present.execute("PRAGMA synchronous=OFF")
            template.backup(present, progress=check, sleep=LOOK_S)

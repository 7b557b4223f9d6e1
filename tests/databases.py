"""One SQLite database that stays open: to open one, and to compile every statement anew, is slow."""

import contextlib
import copy
import shutil
import sqlite3
from pathlib import Path

from foretell.store.database import Database
from foretell.store.topics import Topics


class SharedDatabase:
    """The database of a test process; each test finds it as empty as a new one."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template = template
        self._path = shutil.copy(template, folder / "foretell.db")
        self.database = Database(f"sqlite+aiosqlite:///{self._path}")

    def emptied(self) -> Database:
        """Return the database with what is in the template, and with nobody who watches it."""
        with (
            contextlib.closing(sqlite3.connect(self._template)) as template,
            contextlib.closing(sqlite3.connect(self._path)) as present,
        ):
            present.execute("PRAGMA synchronous=OFF")
            template.backup(present)
        database = copy.copy(self.database)
        database._topics = Topics()
        return database

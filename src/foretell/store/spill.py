"""Mappings that need not fit into memory: rows in a temporary SQLite file, the last used of which are held.

One file has several mappings, and one bound for the rows that all of them hold. When it is reached, changed rows are
written and none is held. The file is not synced, and it is deleted when it is closed.
"""

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

ROWS_HELD_MAX: Final = 50_000
ROWS_PER_FETCH: Final = 1_000
CACHE_KIB: Final = 32 * 1024

K = TypeVar("K")
V = TypeVar("V")


class SpillFile:
    """The file; it may be used by one thread, and ends as a context."""

    def __init__(self, rows_held_max: int = ROWS_HELD_MAX) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="foretell-spill-")
        place = Path(self._folder.name) / "rows.db"
        self.connection = sqlite3.connect(place, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIB}"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute("BEGIN")
        self.rows_held_max = rows_held_max
        self._mappings: list[SpilledRows[Any, Any]] = []
        self._held = 0
        self.held_most = 0
        """The most rows that were held at once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()
        self._folder.cleanup()

    def mapping(
        self, name: str, keys: int, kind: type[V], default: V | None = None
    ) -> "SpilledRows[Any, V]":
        """Return a new mapping of this name, whose keys have so many columns, to values of this type."""
        new: SpilledRows[Any, V] = SpilledRows(self, name, keys, kind, default)
        self._mappings.append(new)
        return new

    def take_place(self) -> None:
        """Make room for one more row in memory."""
        if self._held >= self.rows_held_max:
            for each in self._mappings:
                each.flush()
                each.forget()
            self._held = 0
        self._held += 1
        self.held_most = max(self.held_most, self._held)


class SpilledRows(Generic[K, V]):
    """One mapping: a key is a text, a number, or a tuple of them; values are encoded."""

    def __init__(
        self, file: SpillFile, name: str, keys: int, kind: type[V], default: V | None
    ) -> None:
        self._file, self._default = file, default
        self.columns = keys
        self._held: dict[K, V] = {}
        self._changed: set[K] = set()
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode
        columns = [f"key_{place}" for place in range(keys)]
        named = ", ".join(columns)
        file.connection.execute(
            f"CREATE TABLE {name} ({named}, value, PRIMARY KEY ({named})) WITHOUT ROWID"
        )
        same = " AND ".join(f"{column} = ?" for column in columns)
        self._one = f"SELECT value FROM {name} WHERE {same}"  # noqa: S608 - names are the code's own
        self._all = f"SELECT * FROM {name} ORDER BY {named}"  # noqa: S608 - names are the code's own
        places = ", ".join("?" * (keys + 1))
        self._firsts = f"SELECT count(DISTINCT {columns[0]}) FROM {name}"  # noqa: S608 - names are the code's own
        self._put = f"INSERT OR REPLACE INTO {name} VALUES ({places})"  # noqa: S608 - names are the code's own

    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of a key, or the given one."""
        value = self._found(key)
        return default if value is None else value

    def __getitem__(self, key: K) -> V:
        value = self._found(key)
        if value is None:
            value = self._default
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: K) -> bool:
        return self._found(key) is not None

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self._held:
            self._file.take_place()
        self._held[key] = value
        self._changed.add(key)

    def count_firsts(self) -> int:
        """Return the number of values that the first column of the keys has."""
        self.flush()
        [count] = self._file.connection.execute(self._firsts).fetchone()
        return int(count)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield all rows in the order of their keys; the mapping must not change meanwhile."""
        self.flush()
        cursor = self._file.connection.execute(self._all)
        while rows := cursor.fetchmany(ROWS_PER_FETCH):
            for *key, value in rows:
                yield self._key(key), self._decode(value)

    def flush(self) -> None:
        """Write the rows that have changed."""
        rows = [
            (*self._cells(key), self._encode(self._held[key]))
            for key in sorted(self._changed)  # type: ignore[type-var]
        ]
        self._file.connection.executemany(self._put, rows)
        self._changed.clear()

    def forget(self) -> None:
        """Hold no row any more; all must have been written."""
        assert not self._changed
        self._held.clear()

    def _found(self, key: K) -> V | None:
        held = self._held.get(key)
        if held is not None:
            return held
        row = self._file.connection.execute(self._one, self._cells(key)).fetchone()
        if row is None:
            return None
        value = self._decode(row[0])
        self._file.take_place()
        self._held[key] = value
        return value

    def _cells(self, key: K) -> tuple[Any, ...]:
        return key if isinstance(key, tuple) else (key,)

    def _key(self, cells: Sequence[Any]) -> Any:
        return cells[0] if self.columns == 1 else tuple(cells)

"""The queries that are run, with their values, as the driver gets them, and their plans."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect
from typing import Any

import sqlalchemy as sa

from foretell.store.database import Database


@contextmanager
def recorded() -> Iterator[list[tuple[str, Any]]]:
    """Collect the queries that are run, with their values."""
    found: list[tuple[str, Any]] = []

    def record(_c: object, _u: object, sql: str, values: Any, _x: object, _m: object) -> None:
        if sql.lstrip("( \n").upper().startswith(("SELECT", "WITH")):
            found.append((sql, values))

    sa.event.listen(sa.Engine, "before_cursor_execute", record)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", record)


def sqlite_steps(path: Path, queries: Sequence[tuple[str, Any]]) -> int:
    """Return how many steps of its machine SQLite takes for queries.

    A new connection first reads the schema, about 2,000 steps whatever the rows: those are not counted.
    """
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with closing(connect(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        connection.execute("SELECT 1 FROM markets LIMIT 1").fetchall()
        connection.set_progress_handler(step, 1)
        for sql, values in queries:
            connection.execute(sql, values).fetchall()
    return count


async def postgres_plans(
    database: Database,
    queries: Sequence[tuple[str, Any]],
    *,
    may_scan: bool = False,
    is_run: bool = False,
) -> list[str]:
    """Return the lines of PostgreSQL's plans, in which a table is read whole only where it has no index.

    A table of a test fits on few pages, which the planner may scan although it has one. A query that is run has the
    number of rows of each step.
    """
    explain = "EXPLAIN (ANALYZE, TIMING OFF)" if is_run else "EXPLAIN"
    lines: list[str] = []

    def ask(connection: sa.Connection) -> None:
        if not may_scan:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        for sql, values in queries:
            rows = connection.exec_driver_sql(f"{explain} {sql}", values)
            lines.extend(str(row[0]) for row in rows)

    await database.run_sync(ask)
    return lines

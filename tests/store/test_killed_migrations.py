"""Migrations whose process is killed before any of their statements.

`make faults` kills at many statements of each database, `make test` at a few.
"""

import asyncio
import os
import sys
from collections.abc import Callable

import alembic.command
import pytest
import sqlalchemy as sa
from tests.store.test_migrations import ask, differences, empty_url, revision

from foretell.store.database import Database
from foretell.store.migrations import configuration, head, upgrade

__all__ = ["empty_url"]

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("FORETELL_TEST_CYCLES", "3"))
FIRST = "0001"
STATEMENTS_MIN = 20
ROW = sa.text("INSERT INTO projections (name, sequence) VALUES ('a', 7)")

KILLED = """
import asyncio, os, signal, sys
import alembic.command, aiosqlite, asyncpg
import sqlalchemy as sa
from foretell.store.database import Database
from foretell.store.migrations import upgrade

url, kills = sys.argv[1], int(sys.argv[2])

def killed_before(number):
    # It upgrades until that statement, or until the commit; returns how many statements it made.
    reading, writing = os.pipe()
    if os.fork() == 0:
        asyncio.run(upgrade_until(number, writing))
        os._exit(0)
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == -signal.SIGKILL
    return int(os.read(reading, 9))

async def upgrade_until(number, writing):
    made = 0

    def kill(*_):
        os.write(writing, str(made).encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def count(*_):
        nonlocal made
        made += 1
        if made == number:
            kill()

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    sa.event.listen(sa.Engine, "commit", kill)
    async with Database(url) as database:
        await upgrade(database)

statements = killed_before(0)
places = sorted({1 + (statements - 1) * step // kills for step in range(kills)})
for each in places:
    assert killed_before(each) == each
print(statements, len(places))
"""


def to_first(connection: sa.Connection) -> None:
    alembic.command.upgrade(configuration(connection), FIRST)


@pytest.mark.case("A-10")
async def test_an_upgrade_that_is_killed_before_any_statement_is_undone_and_completed_by_the_next(
    empty_url: str, played: Callable[[int], None]
) -> None:
    async with Database(empty_url) as database:
        await database.run_sync(to_first)
        async with database.writing() as tx:
            await tx.execute(ROW)
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, empty_url, str(KILLS), stdout=asyncio.subprocess.PIPE
    )
    statements, kills = (await killed.communicate())[0].split()
    assert killed.returncode == 0
    assert int(statements) > STATEMENTS_MIN
    async with Database(empty_url) as database:
        assert await ask(database, revision) == FIRST
        await upgrade(database)
        assert await ask(database, revision) == head()
        assert await ask(database, differences) == []
        async with database.reading() as tx:
            assert await tx.scalar(sa.text("SELECT sequence FROM projections")) == 7
    played(int(kills))

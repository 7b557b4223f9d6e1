"""The rig of the tables' tests: an engine whose tables a real child process writes.

Whatever happened to the process, its tables must equal those that a fresh fold of the journal gives.
"""

import asyncio
import contextlib
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from tests.rigs.builders.sums import a_code
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.app.tables_process.client import RemoteTables, TablesLimits
from foretell.app.tables_process.feed import FeedLimits
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import CancelOrders, Command, decode_command
from foretell.domain.exchange.state import State
from foretell.domain.values.sharding import ALONE
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.journal.port import Journal
from foretell.runtime.child_processes import RestartBackoff
from foretell.store.database import Database
from foretell.store.trading.projected import PROJECTED

SEGMENT_BYTES: Final = 256 * 1024
SOON_S: Final = 180.0
"""Only against a hang: a process takes long to start on a busy machine, and to write what it lacks."""
LOOK_S: Final = 0.005
AT_ONCE: Final = 20
PEOPLE: Final = ("alice", "bob", "carol")
BUILDERS: Final = (None, a_code(1), a_code(2))
QUICK: Final = TablesLimits(
    send_every_s=0.01,
    restarts=RestartBackoff(first_s=0.01, most_s=0.05),
    check_every_s=0.05,
    begins_within_s=SOON_S,
    hangs_after_s=2 * SOON_S,
    progress_deadline_s=SOON_S,
)
SMALL: Final = QUICK._replace(
    feed=FeedLimits(commands_max=20), commands_per_frame=5, restarts=RestartBackoff(0.3, 0.3)
)
"""Limits under which a process that is away for a moment has to read the journal."""


def some_trading(count: int, first: int = 0) -> Iterator[Command]:
    """Yield orders of some people, which often match and are sometimes canceled."""
    rng = random.Random(first)
    for salt in range(first, first + count):
        name = rng.choice(PEOPLE)
        make = rng.choice([a_buy, a_sell])
        order = make(
            name,
            price_ticks=rng.randint(40, 60),
            size_units=rng.randint(5, 20) * TOKEN,
            salt=str(salt),
        )
        placing = a_placing(order, at_ms=NOW_MS + 100 * salt, builder=rng.choice(BUILDERS))
        yield placing
        if rng.random() < 0.2:
            yield CancelOrders(placing.at_ms, an_address(name), (placing.order_id,))


async def submit(engine: Engine, *commands: Command) -> None:
    """Submit commands in order, many at once, as a server does."""
    for start in range(0, len(commands), AT_ONCE):
        part = commands[start : start + AT_ONCE]
        await asyncio.gather(*(engine.submit(command) for command in part), return_exceptions=True)


class TablesRig:
    """A running engine and its tables."""

    def __init__(
        self, engine: Engine, tables: RemoteTables, database: Database, empty_database: Path
    ) -> None:
        self.engine = engine
        self.tables = tables
        self.database = database
        self._empty_database = empty_database
        self._salts = engine.sequence

    async def open(self) -> None:
        await submit(self.engine, an_open_market(), some_funds(*PEOPLE))

    async def trade(self, count: int) -> None:
        """Have people place so many orders."""
        first, self._salts = self._salts, self._salts + count
        await submit(self.engine, *some_trading(count, first))

    async def written(self) -> None:
        """Return when the tables have everything."""
        async with asyncio.timeout(SOON_S):
            await self.tables.catch_up()

    async def check(self) -> None:
        """Check that the tables have all of the journal, each row as a fresh fold gives it."""
        await self.written()
        expected = await fold_rows(self.engine.journal, self._empty_database)
        assert await dump(self.database) == expected

    @property
    def pid(self) -> int:
        process = self.tables.child.process
        assert process is not None, "the process runs"
        return process.pid

    def kill(self) -> None:
        """Kill the process, unless it is just being started again."""
        process = self.tables.child.process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    async def freeze(self) -> int:
        """Stop the process with SIGSTOP, and return its id."""
        os.kill(self.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        await until(lambda: ") T " in stat.read_text())
        return self.pid


async def until(is_so: Any) -> None:
    """Return when a condition holds, which is soon."""
    async with asyncio.timeout(SOON_S):
        while not is_so():  # noqa: ASYNC110 - nothing publishes it
            await asyncio.sleep(LOOK_S)


async def dump(database: Database) -> dict[str, list[Any]]:
    """Return every projected row."""
    async with database.reading() as tx:
        return {
            table.name: sorted((tuple(row) for row in await tx.all(sa.select(table))), key=repr)
            for table in PROJECTED
        }


async def fold_rows(journal: Journal, empty_database: Path) -> dict[str, list[Any]]:
    """Return the rows of a journal that is folded from its first command into an empty database."""
    path = empty_database.with_name("folded.db")
    shutil.copy(empty_database, path)
    state = State()
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        projection = Projection(database)
        await projection.start()
        for entry in journal.entries():
            outcome = apply(state, decode_command(entry.payload))
            projection.on_committed(CommittedCommand(entry.sequence, outcome, entry.payload))
        await projection.catch_up()
        return await dump(database)


@contextlib.asynccontextmanager
async def a_tables_rig(
    journal: Journal,
    database: Database,
    empty_database: Path,
    limits: TablesLimits = QUICK,
) -> AsyncIterator[TablesRig]:
    """Run an engine on a journal with its tables in a database, as a host does."""
    engine = Engine(journal, lambda: NOW_MS)
    tables = RemoteTables(database, ALONE.name, journal.address, limits)
    engine.subscribe(tables.on_committed)
    await tables.start()
    try:
        await engine.start(tables.sequence, tables.drain_if_large)
        await tables.drain_if_large()
        yield TablesRig(engine, tables, database, empty_database)
    finally:
        await engine.close()
        await tables.close()

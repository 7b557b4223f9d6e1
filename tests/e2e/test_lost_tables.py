"""M1: a database that is new, older or cut, under resting orders of a whole installation."""

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.resting_orders import SIZE_UNITS, RestingOrders
from tests.rigs.installation import Running

from foretell.domain.exchange.commands import ObserveChain, decode_command
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.engine.writer.chain_feed import BLOCKS_UNOBSERVED_MAX
from foretell.journal.files.reader import read_entries

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e killed")]

BLOCKS = 1_000
"""History below the funds of the orders: a new index takes a while to reach them."""
BLOCKS_AT_ONCE = 50
ORDERS = 30
TABLES = ("foretell.db", "foretell.db-wal", "foretell.db-shm")
HOLD = """
import sqlite3, sys
tables = sqlite3.connect(sys.argv[1])
tables.execute("SELECT count(*) FROM sqlite_master").fetchone()
print("held", flush=True)
sys.stdin.read()
"""
ACT_S = 0.02
CLOSED_WITHIN_S = 300.0
OBSERVED_WITHIN_S = 900.0
KEPT_PERCENT = 25


def copy_of_tables(data: Path, target: Path) -> None:
    """Copy a database that is in use, as a backup does."""
    with (
        contextlib.closing(sqlite3.connect(data / TABLES[0])) as source,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)


@contextlib.contextmanager
def held(data: Path) -> Iterator[None]:
    """Keep the log of the database: a process that closes the last connection moves it into the database."""
    command = [sys.executable, "-c", HOLD, str(data / TABLES[0])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            yield
            ends_s = time.monotonic() + CLOSED_WITHIN_S
            while users_of(data / TABLES[0]) != {holder.pid}:
                assert time.monotonic() < ends_s, (
                    "a process of a killed installation keeps the tables"
                )
                time.sleep(ACT_S)
        finally:
            holder.kill()


def users_of(file: Path) -> set[int]:
    """Return the processes that have a file open."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it was closed, or its process has ended
            if link.readlink() == file.resolve():
                found.add(int(link.parts[2]))
    return found


def delete(data: Path, _older: Path) -> None:
    for name in TABLES:
        (data / name).unlink(missing_ok=True)


def restore(data: Path, older: Path) -> None:
    delete(data, older)
    shutil.copy(older, data / TABLES[0])


def cut_log(data: Path, _older: Path) -> None:
    """Keep the database as it was at its last checkpoint, and the beginning of its log."""
    log = data / TABLES[1]
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size * KEPT_PERCENT // 100)
    (data / TABLES[2]).unlink(missing_ok=True)


@pytest.mark.case("E-06")
@pytest.mark.parametrize("damage", [delete, restore, cut_log])
async def test_attack_m1_tables_that_are_indexed_again_cancel_no_covered_order(
    running: Running, tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """The index was believed at every block that it reached: before the funds, every order was uncovered."""
    async with running.session() as session:
        copy_of_tables(running.data, tmp_path / "older.db")
        for _ in range(BLOCKS // BLOCKS_AT_ONCE):
            await session.rpc.send("anvil_mine", hex(BLOCKS_AT_ONCE))
        orders = await RestingOrders.of_new_trader(session)
        for _ in range(ORDERS):
            await orders.place()
        await orders.check()
        with held(running.data):
            running.kill()
        damage(running.data, tmp_path / "older.db")

        running.begin()
        starting = asyncio.create_task(running.ready())
        while not starting.done():
            await orders.act_when_answered()
            await asyncio.sleep(ACT_S)
        await starting
        answered = orders.answers
        for _ in range(ORDERS):
            await orders.act_when_answered()
        assert orders.answers > answered, orders.refusals
        head = int(await session.rpc.send("eth_blockNumber"), 16)
        await session.rpc.send("anvil_mine", hex(2 * BLOCKS_UNOBSERVED_MAX))
        await until_observed(running.data, head)
        await orders.check()
        book = await session.trading.get("/book", token_id=orders.token_id)
        sizes = [float(level["size"]) for level in book["bids"]]
        assert sum(sizes) * UNITS_PER_TOKEN == len(orders.live) * SIZE_UNITS
    assert running.stop() == 0, running.output


async def until_observed(data: Path, block: int) -> None:
    """Wait until the engine has observed a later block: the new tables have reached it."""
    async with asyncio.timeout(OBSERVED_WITHIN_S):
        while observed_block(data) <= block:  # noqa: ASYNC110 - files notify no one
            await asyncio.sleep(0.2)


def observed_block(data: Path) -> int:
    commands = (decode_command(entry.payload) for entry in read_entries(data / "journal"))
    return max(each.block_number for each in commands if isinstance(each, ObserveChain))

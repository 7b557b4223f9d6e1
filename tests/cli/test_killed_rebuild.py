"""`foretell index rebuild` as a process that is killed at a named place: readers, its lock, and the next run."""

import asyncio
import contextlib
import itertools
import signal
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.rigs.rows import Rows
from tests.rigs.values import TOKEN, a_word, an_asset
from tests.store.index.test_rebuild import rows_of_all_generations
from tests.store.live_sums import Dump, dump_sums, rebuild

from foretell.app.clock_and_ids import now_ms
from foretell.cli.options import settings_of
from foretell.domain.errors.storage import RebuildRunning
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind, ActivityRow, record_activities
from foretell.store.index.positions import PositionRow, record_positions
from foretell.store.rebuild_lock import rebuild_lock
from foretell.store.tables import odd_trading_totals, standings

pytestmark = pytest.mark.anyio

WALLETS: Final = 30
TRADES_EACH: Final = 3
AT_S: Final = 1_000_000
"""A time before the beginning of each period, also when the test takes long."""
WITHIN_S: Final = 120.0
POLL_S: Final = 0.01
BEHIND_TOTALS: Final = "refresh_generation"
"""What is called when the totals of the next generation are written, and nothing is live."""
WITHIN_SWAP: Final = "forget_cursors"
"""What is called in the transaction that makes the next generation live."""
REACHED: Final = "the place is reached"
UNTIL_PLACE: Final = f"""
import asyncio, sys
from foretell.cli.main import run
from foretell.indexer import rebuild

async def wait_for_ever(*_):
    print({REACHED!r}, flush=True)
    await asyncio.Event().wait()

setattr(rebuild, sys.argv.pop(1), wait_for_ever)
run()
"""
"""The command, which waits at a place for ever; its first argument is the name of a function of the rebuild."""


async def start(data: Path, place: str | None = None) -> asyncio.subprocess.Process:
    """Start the command, which has the environment of the test, and waits at a place if one is given."""
    program = ("-m", "foretell") if place is None else ("-c", UNTIL_PLACE, place)
    arguments = (*program, "index", "rebuild", "--data", str(data))
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )


async def write_sums(database: Database) -> tuple[Dump, Dump]:
    """Write trades for several steps and their sums, of generation 1; spoil the sums, and return both."""
    wallets = [Address(f"0x{number:040x}") for number in range(1, 1 + WALLETS)]
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
        blocks = itertools.count(10)
        trades = [_a_trade(wallet, next(blocks)) for _ in range(TRADES_EACH) for wallet in wallets]
        await record_activities(tx, trades)
        await record_positions(tx, [_a_position(wallet, next(blocks)) for wallet in wallets])
    await rebuild(database, now_ms())
    kept = await dump_sums(database)
    assert {name for name, rows in kept.items() if rows} >= {"trading_totals", "standings", "wins"}
    async with database.writing() as tx:
        await tx.execute(odd_trading_totals.update().values(trades=1))
        await tx.execute(standings.update().values(gain_units=1))
    return kept, await dump_sums(database)


def _a_trade(wallet: Address, number: int) -> ActivityRow:
    return ActivityRow(
        block_number=number,
        log_index=0,
        part=0,
        wallet=wallet,
        kind=ActivityKind.TRADE,
        condition_id=a_word("rain"),
        token_id=an_asset(is_yes=True, market="rain"),
        side=Side.BUY,
        size_units=2 * TOKEN,
        cost_units=TOKEN,
        is_taker=True,
        timestamp_s=AT_S,
        tx_hash=a_word(f"tx {number}"),
    )


def _a_position(wallet: Address, number: int) -> PositionRow:
    """Return a position that was closed with a gain."""
    token_id = an_asset(is_yes=True, market="rain")
    amounts = (0, 0, TRADES_EACH * 2 * TOKEN, TRADES_EACH * TOKEN, number)
    return PositionRow(wallet, token_id, a_word("rain"), *amounts, AT_S, number)


async def until_reached(rebuilding: asyncio.subprocess.Process) -> bytes:
    """Return what the command printed until it waits."""
    assert rebuilding.stdout is not None
    async with asyncio.timeout(WITHIN_S):
        return await rebuilding.stdout.readuntil(f"{REACHED}\n".encode())


async def until_the_lock_is_free(database: Database) -> None:
    """Take the lock; a server may need a moment to notice that a process has ended."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(RebuildRunning):
                async with rebuild_lock(database):
                    return
            await asyncio.sleep(POLL_S)


@pytest.mark.parametrize("place", [BEHIND_TOTALS, WITHIN_SWAP])
async def test_a_rebuild_that_is_killed_changes_nothing_and_is_completed_by_the_next(
    stored: Path, place: str
) -> None:
    async with Database(settings_of(data=stored).database) as database:
        kept, spoiled = await write_sums(database)
        rows = await rows_of_all_generations(database)
        killed = await start(stored, place)
        printed = await until_reached(killed)
        with pytest.raises(RebuildRunning):
            async with rebuild_lock(database):
                raise AssertionError("both have the lock")
        killed.send_signal(signal.SIGKILL)
        rest, _ = await killed.communicate()
        assert (killed.returncode, rest) == (-signal.SIGKILL, b"")
        assert b"swapped" not in printed
        assert await dump_sums(database) == spoiled, "readers have the sums of before, all of them"
        assert await rows_of_all_generations(database) > rows
        await until_the_lock_is_free(database)

        completing = await start(stored)
        printed, _ = await completing.communicate()
        assert completing.returncode == 0
        assert b"rows that an unfinished rebuild had left" in printed
        assert await dump_sums(database) == kept
        assert await rows_of_all_generations(database) == rows

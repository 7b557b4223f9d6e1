"""`foretell index rebuild`: what it prints, and what it refuses."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.rigs.in_process import Call
from tests.rigs.read_apis import keep_listings, keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import TOKEN
from tests.store.live_sums import Dump, dump_sums

from foretell.bench.rigs.ports import free_port
from foretell.cli.options import settings_of
from foretell.indexer.rebuild import Pacing
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.store.database import Database
from foretell.store.index.generations import begin_next
from foretell.store.rebuild_lock import rebuild_lock
from foretell.store.tables import market_totals, standings, trading_totals


def a_database(data: Path) -> Database:
    return Database(settings_of(data=data).database)


async def write_spoiled_sums(data: Path) -> tuple[Dump, Dump]:
    """Write two wallets' trades with their sums, spoil the sums, and return both."""
    async with a_database(data) as database:
        async with database.writing() as tx:
            rows = Rows(tx)
            await rows.open_named("rain")
            for who in ("ann", "bob"):
                await rows.buy(who, "rain", 2 * TOKEN, TOKEN)
                await rows.hold(who, "rain", 2 * TOKEN, TOKEN)
                await rows.hold(f"{who}'s other", "rain", 0, 0, realized_units=5)
        await keep_rankings(database)
        await keep_listings(database)
        kept = await dump_sums(database)
        async with database.writing() as tx:
            await tx.execute(standings.update().values(gain_units=1))
            await tx.execute(trading_totals.update().values(trades=100))
            await tx.execute(market_totals.update().values(volume_units=123))
        return kept, await dump_sums(database)


async def live_sums(data: Path) -> Dump:
    async with a_database(data) as database:
        return await dump_sums(database)


async def volumes(data: Path) -> list[int]:
    async with a_database(data) as database, database.reading() as tx:
        return [int(row[0]) for row in await tx.all(sa.select(market_totals.c.volume_units))]


@pytest.mark.parametrize("is_in_use", [False, True])
def test_sums_are_rebuilt_whether_the_installation_runs_or_not(
    call: Call, stored: Path, *, is_in_use: bool
) -> None:
    kept, _ = asyncio.run(write_spoiled_sums(stored))
    lock = lock_folder(stored) if is_in_use else None
    called = call("index", "rebuild", "--data", str(stored))
    if lock is not None:
        unlock_folder(lock)
    lines = called.out.splitlines()
    assert (called.code, called.err) == (0, "")
    assert lines[0] == "computing the sums of wallets beside those that are read"
    assert lines[2].startswith("swapped at block ")
    assert "2 trades of wallets" in lines[2]
    assert lines[-3:-1] == [
        "computed the totals of 1 markets",
        "added up the volumes of 0 builders",
    ]
    assert lines[-1].startswith("the sums of the index are rebuilt (")
    rebuilt = asyncio.run(live_sums(stored))
    assert rebuilt["trading_totals"] == kept["trading_totals"]
    assert rebuilt["wins"] == kept["wins"]
    assert asyncio.run(volumes(stored)) != [123]


def test_a_second_rebuild_at_the_same_time_is_refused(call: Call, stored: Path) -> None:
    _, spoiled = asyncio.run(write_spoiled_sums(stored))

    async def call_beside_another() -> tuple[object, str]:
        async with a_database(stored) as database, rebuild_lock(database):
            called = await asyncio.to_thread(call, "index", "rebuild", "--data", str(stored))
        return called.code, called.err

    code, error = asyncio.run(call_beside_another())
    assert code == 1
    assert "another process rebuilds the sums" in error
    assert asyncio.run(live_sums(stored)) == spoiled


def test_an_index_that_grows_faster_ends_the_command(
    call: Call, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, spoiled = asyncio.run(write_spoiled_sums(stored))
    monkeypatch.setattr("foretell.indexer.rebuild.CATCH_UPS_MAX", 0)
    called = call("index", "rebuild", "--data", str(stored))
    assert called.code == 1
    assert called.err == (
        "error: the sums did not reach the last block in 0 rounds, because the index grows faster;"
        " rebuild them when it has caught up with the chain\n"
    )
    assert asyncio.run(live_sums(stored)) == spoiled


def test_a_rebuild_whose_place_another_took_ends_the_command(
    call: Call, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a session ends with its connection, and another process begins."""
    _, spoiled = asyncio.run(write_spoiled_sums(stored))

    async def begin_another(_: Pacing) -> None:
        async with a_database(stored) as database, database.writing() as tx:
            await begin_next(tx)

    monkeypatch.setattr(Pacing, "pause", begin_another)
    called = call("index", "rebuild", "--data", str(stored))
    assert called.code == 1
    assert called.err == (
        "error: another rebuild has replaced the sums of generation 1; wait until it has ended,"
        " and run the command again\n"
    )
    assert asyncio.run(live_sums(stored)) == spoiled


def test_a_database_that_does_not_answer_ends_the_command(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql+asyncpg://u:secret@127.0.0.1:{free_port()}/none"
    monkeypatch.setenv("FORETELL_DATABASE_URL", url)
    called = call("index", "rebuild", "--data", str(tmp_path))
    assert called.code == 1
    assert "the database is unavailable" in called.err
    assert "secret" not in called.err


def test_an_installation_of_an_older_version_is_not_upgraded_under_its_feet(
    call: Call, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lock = lock_folder(data)
    called = call("index", "rebuild", "--data", str(data))
    unlock_folder(lock)
    assert called.code == 1
    assert "another process uses" in called.err

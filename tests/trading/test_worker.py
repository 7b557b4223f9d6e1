import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.build import NOW_S, a_buy, a_word
from tests.trading.venue import Clock, Trader, Venue, a_venue

from foretell.trading.worker import run

pytestmark = pytest.mark.anyio


async def stop(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_all_loops_run_until_they_are_stopped(database_file: Path, tmp_path: Path) -> None:
    async with a_venue(tmp_path / "journal", database_file, writes=False) as venue:
        running = asyncio.create_task(run(venue.services))
        await venue.open("market", "alice")
        await check_every_loop(venue, await venue.trader("alice"))
        await stop(running)


async def check_every_loop(venue: Venue, alice: Trader) -> None:
    expired = asyncio.Event()
    await alice.placed(a_buy("alice", expiration_s=NOW_S + 100), "GTD")
    venue.services.engine.hear(lambda _: expired.set())
    venue.clock.move(60_000)
    async with asyncio.timeout(10):
        await expired.wait()
    await venue.open("rain")
    async with asyncio.timeout(10):
        while venue.services.streams._market.announcements:  # noqa: ASYNC110 - in its own time
            await asyncio.sleep(0.01)
    await venue.settle_tables()
    assert not venue.services.engine.state.live_orders


async def test_a_loop_that_breaks_off_begins_again(database_file: Path, tmp_path: Path) -> None:
    async with a_venue(tmp_path / "journal", database_file, Clock(), writes=False) as venue:
        running = asyncio.create_task(run(venue.services))
        await rename(venue, "quotes", "hidden")
        await venue.open_in_memory("market", "alice")
        await asyncio.sleep(0.1)
        assert venue.services.projection.sequence == 0
        await rename(venue, "hidden", "quotes")
        async with asyncio.timeout(10):
            await venue.settle_tables()
        await stop(running)
        assert venue.services.projection.sequence == venue.services.board.sequence


async def test_a_start_knows_the_names_of_every_market(database_file: Path, tmp_path: Path) -> None:
    async with a_venue(tmp_path / "journal", database_file) as venue:
        await venue.open("rain")
    async with a_venue(tmp_path / "journal", database_file) as venue:
        assert venue.services.catalogue.find(a_word("rain")) is not None


async def rename(venue: Venue, table: str, name: str) -> None:
    async with venue.services.database.writing() as tx:
        await tx.execute(sa.text(f"ALTER TABLE {table} RENAME TO {name}"))

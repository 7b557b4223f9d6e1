import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.rigs.clock import Clock
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.trading import Trader, TradingRig, a_rig
from tests.rigs.values import NOW_S, a_buy, a_word, an_open_market, an_order_id

from foretell.domain.errors.exchange import EngineRestarting
from foretell.domain.errors.storage import JournalBehindTables
from foretell.engine.host import EngineHost
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.journal.files.journal import FileJournal
from foretell.runtime.loops import run_together
from foretell.store.trading.orders import load_order

pytestmark = pytest.mark.anyio


async def stop(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_all_loops_run_until_they_are_stopped(database_file: Path, tmp_path: Path) -> None:
    async with a_rig(tmp_path / "journal", database_file, writes=False) as rig:
        running = asyncio.create_task(run_together(rig.trading.loops().values()))
        await rig.open("market", "alice")
        await check_every_loop(rig, await rig.trader("alice"))
        await stop(running)


async def check_every_loop(rig: TradingRig, alice: Trader) -> None:
    expired = asyncio.Event()
    await alice.placed(a_buy("alice", expiration_s=NOW_S + 100), "GTD")
    rig.host.engine.subscribe(lambda _: expired.set())
    rig.clock.move(60_000)
    async with asyncio.timeout(60):
        await expired.wait()
    await rig.open("rain")
    async with asyncio.timeout(60):
        while rig.context.streams.market.announcements:  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.01)
    await rig.settle_tables()
    assert not rig.host.engine.state.live_orders


async def test_a_loop_that_fails_is_started_again(database_file: Path, tmp_path: Path) -> None:
    async with a_rig(tmp_path / "journal", database_file, Clock(), writes=False) as rig:
        running = asyncio.create_task(run_together(rig.trading.loops().values()))
        await rename(rig, "quotes", "hidden")
        await rig.open_in_memory("market", "alice")
        await asyncio.sleep(0.1)
        assert rig.host.projection.sequence == 0
        await rename(rig, "hidden", "quotes")
        async with asyncio.timeout(60):
            await rig.settle_tables()
        await stop(running)
        assert rig.host.projection.sequence == rig.context.books.sequence


async def test_a_start_loads_the_names_of_every_market(database_file: Path, tmp_path: Path) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("rain")
    async with a_rig(tmp_path / "journal", database_file) as rig:
        assert rig.context.market_names.find(a_word("rain")) is not None


@contextlib.asynccontextmanager
async def restarted(rig: TradingRig, folder: Path) -> AsyncIterator[EngineHost]:
    """Give a host over the tables of a rig and another journal, before they are started."""
    engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), rig.clock.now_ms)
    yield EngineHost(engine, Projection(rig.context.database), rig.host.heartbeats)
    await engine.close()


@pytest.fixture
async def begun(database_file: Path, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """A rig with three commands in its tables, and a copy of its journal after two of them."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market", "alice")
        await rig.settle_tables()
        shutil.copytree(tmp_path / "journal", tmp_path / "backup")
        await rig.rest(a_buy("alice"))
        await rig.settle_tables()
        yield rig


@pytest.mark.parametrize(("folder", "end"), [("backup", 2), ("new", 0)])
async def test_a_start_refuses_a_journal_that_is_behind_the_tables(
    begun: TradingRig, tmp_path: Path, folder: str, end: int
) -> None:
    async with restarted(begun, tmp_path / folder) as host:
        with pytest.raises(JournalBehindTables) as refusal:
            await host.start()
        assert refusal.value.details == {"tables_sequence": 3, "journal_sequence": end}
        assert f"at sequence 3, and the journal ends at {end}" in refusal.value.message
        with pytest.raises(EngineRestarting):
            await host.engine.submit(an_open_market("rain"))


async def test_a_start_takes_tables_that_are_behind_the_journal(
    begun: TradingRig, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "journal", tmp_path / "same")
    async with begun.context.database.writing() as tx:
        await tx.execute(sa.text("UPDATE projections SET sequence = 2"))
        await tx.execute(sa.text("DELETE FROM orders"))
    async with restarted(begun, tmp_path / "same") as host:
        await host.start()
        await host.projection.catch_up()
        assert host.projection.sequence == 3
        async with begun.context.database.reading() as tx:
            assert await load_order(tx, an_order_id(a_buy("alice"))) is not None


async def rename(rig: TradingRig, table: str, name: str) -> None:
    async with rig.context.database.writing() as tx:
        await tx.execute(sa.text(f"ALTER TABLE {table} RENAME TO {name}"))

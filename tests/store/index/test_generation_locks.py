"""Waits of indexing and of a rebuild for each other: on PostgreSQL each gives up after a while."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.postgres import PostgresServer
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS
from tests.store.index.test_rebuild import Killed, Watched, some_sums, spoil
from tests.store.live_sums import dump_sums

from foretell.domain.errors.storage import RowsLocked, StoreUnavailable, SumsHeld
from foretell.indexer.listings import rebuild_listings
from foretell.indexer.rebuild import RebuildContext, rebuild_sums, rebuild_supplies
from foretell.store.database import Database, Transaction
from foretell.store.index.generation_rows import remove_unread
from foretell.store.index.generations import begin_next, hold_live, load_kept, load_live
from foretell.store.index.listing_totals import hold_listing_totals
from foretell.store.index.rankings.progress import forget_cursors
from foretell.store.tables import event_totals, market_totals

pytestmark = pytest.mark.anyio

LOCK_S: Final = 0.5
TRIES: Final = 3
PATIENT_S: Final = 60.0
"""How long one waits where a test is about what ends the wait."""
PATIENT_TRIES: Final = 100
FIRST: Final = asyncio.FIRST_COMPLETED
STEP: Final = 3
"""A step in which an unfinished rebuild has written rows."""
ROWS_MAX: Final = 2
UNREAD_ROWS: Final = sa.text("SELECT count(*) FROM odd_traded_markets")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait for long."""
    monkeypatch.setattr("foretell.store.index.lock_waits.LOCK_S", LOCK_S)
    monkeypatch.setattr("foretell.indexer.rebuild.LOCK_TRIES_MAX", TRIES)
    monkeypatch.setattr("foretell.indexer.rebuild.LOCK_PAUSE_S", LOCK_S)
    monkeypatch.setattr("foretell.indexer.rebuild.LOCK_PAUSE_S_MAX", 2 * LOCK_S)


@pytest.fixture
async def indexer(postgres: PostgresServer) -> AsyncIterator[Database]:
    await asyncio.to_thread(postgres.empty_database)
    async with Database(postgres.database_url) as database:
        yield database


@pytest.fixture
async def rebuilder(indexer: Database) -> AsyncIterator[Database]:
    async with Database(indexer.url) as database:
        yield database


async def leave_unfinished(rebuilder: Database) -> None:
    """Leave rows that nobody reads."""

    async def end(step: int) -> None:
        async with rebuilder.reading() as tx:
            if step >= STEP and await tx.scalar(UNREAD_ROWS):
                raise Killed

    context = RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX, pacing=Watched(end))
    with pytest.raises(Killed):
        await rebuild_sums(context)
    async with rebuilder.writing() as tx:
        await begin_next(tx)


async def test_indexing_does_not_wait_for_a_removal(indexer: Database, rebuilder: Database) -> None:
    await some_sums(indexer)
    await leave_unfinished(rebuilder)
    async with rebuilder.writing() as removing:
        assert await remove_unread(removing, 1) == 1
        async with indexer.writing() as indexing:
            assert await hold_live(indexing) == 0


async def test_a_removal_does_not_wait_for_indexing(indexer: Database, rebuilder: Database) -> None:
    await some_sums(indexer)
    await leave_unfinished(rebuilder)
    async with indexer.writing() as indexing:
        await hold_live(indexing)
        async with rebuilder.writing() as removing:
            assert await remove_unread(removing, 1) == 1


async def test_a_rebuild_waits_for_indexing_at_its_swap_alone_and_not_for_ever(
    indexer: Database, rebuilder: Database
) -> None:
    await some_sums(indexer)
    await leave_unfinished(rebuilder)
    spoiled, lines = await spoil(indexer), list[str]()
    indexing = contextlib.AsyncExitStack()

    async def hold(step: int) -> None:
        if step == 1:
            await hold_live(await indexing.enter_async_context(indexer.writing()))

    context = RebuildContext(
        rebuilder, lambda: NOW_MS, ROWS_MAX, report=lines.append, pacing=Watched(hold)
    )
    async with indexing:
        with pytest.raises(SumsHeld, match=f"in each of {TRIES} tries"):
            await rebuild_sums(context)
    assert [line.partition(" ")[0] for line in lines] == ["removed", "round", *["others"] * 2]
    assert await dump_sums(indexer) == spoiled

    rebuilt = await rebuild_sums(RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX))
    async with indexer.reading() as tx:
        assert await load_live(tx) == rebuilt.generation


async def test_supplies_are_not_added_up_beside_indexing(
    indexer: Database, rebuilder: Database
) -> None:
    """A block that is being written changes balances that the rebuild does not see."""
    async with rebuilder.writing() as beginning:
        await begin_next(beginning)
    async with indexer.writing() as indexing:
        await hold_live(indexing)
        with pytest.raises(SumsHeld):
            await rebuild_supplies(RebuildContext(rebuilder, lambda: NOW_MS))
    assert await rebuild_supplies(RebuildContext(rebuilder, lambda: NOW_MS)) == 0


async def test_a_swap_is_taken_again_once_the_sums_are_free(
    indexer: Database, rebuilder: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretell.indexer.rebuild.LOCK_TRIES_MAX", PATIENT_TRIES)
    kept = await some_sums(indexer)
    await spoil(indexer)
    freed, holding = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with indexer.writing() as tx:
            await hold_live(tx)
            holding.set()
            await freed.wait()

    async def begin_to_hold(step: int) -> None:
        if step == 1:
            holders.append(asyncio.create_task(hold()))
            await holding.wait()

    holders: list[asyncio.Task[None]] = []
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if line.startswith("others"):
            freed.set()

    context = RebuildContext(
        rebuilder, lambda: NOW_MS, ROWS_MAX, report=report, pacing=Watched(begin_to_hold)
    )
    rebuilt = await rebuild_sums(context)
    await asyncio.gather(*holders)
    begun, *waits = [line.partition(" ")[0] for line in lines]
    assert begun == "round"
    assert set(waits) == {"others"}
    assert rebuilt.rounds == 1
    assert await dump_sums(indexer) == kept


async def some_totals(database: Database) -> list[tuple[int, int]]:
    """Open two markets with a trade each, and return the totals of listings."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.match(name, 4, NOW_MS)
    await keep_listings(database)
    return await day_units(database)


async def day_units(database: Database) -> list[tuple[int, int]]:
    """Return the volumes of the last day, of each market and its event."""
    own, of_event = market_totals.c, event_totals.c
    async with database.reading() as tx:
        rows = await tx.all(
            sa.select(own.day_units.label("of_market"), of_event.day_units.label("of_event"))
            .join(event_totals, of_event.event_id == own.event_id)
            .order_by(own.market_id)
        )
    return [(row.of_market, row.of_event) for row in rows]


async def spoil_totals(database: Database) -> None:
    async with database.writing() as tx:
        await tx.execute(market_totals.update().values(day_units=99))
        await tx.execute(event_totals.update().values(day_units=99))


async def test_totals_of_listings_are_computed_once_they_are_free(
    indexer: Database, rebuilder: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: the rebuild ended at the first lock that it did not get."""
    monkeypatch.setattr("foretell.indexer.rebuild.LOCK_TRIES_MAX", PATIENT_TRIES)
    kept = await some_totals(indexer)
    await spoil_totals(indexer)
    lines: list[str] = []
    async with contextlib.AsyncExitStack() as keeping:
        await hold_listing_totals(await keeping.enter_async_context(indexer.writing()))
        freed = asyncio.Event()

        def report(line: str) -> None:
            lines.append(line)
            if len(lines) == TRIES - 1:
                freed.set()

        context = RebuildContext(rebuilder, lambda: NOW_MS, report=report)
        rebuilding = asyncio.create_task(rebuild_listings(context))
        waiting = asyncio.create_task(freed.wait())
        await asyncio.wait({rebuilding, waiting}, return_when=FIRST)
        waiting.cancel()
    assert await rebuilding == len(kept)
    assert {line.partition(" ")[0] for line in lines} == {"others"}
    assert await day_units(indexer) == kept


async def test_totals_of_listings_that_are_never_free_end_a_rebuild_between_two_rows(
    indexer: Database, rebuilder: Database
) -> None:
    kept = await some_totals(indexer)
    await spoil_totals(indexer)
    keeping, lines = contextlib.AsyncExitStack(), list[str]()

    async def hold(_: int) -> None:
        if kept[0] in await day_units(indexer) and not holds:
            holds.append(True)
            await hold_listing_totals(await keeping.enter_async_context(indexer.writing()))

    holds: list[bool] = []
    context = RebuildContext(
        rebuilder, lambda: NOW_MS, 1, report=lines.append, pacing=Watched(hold)
    )
    async with keeping:
        with pytest.raises(SumsHeld, match=f"in each of {TRIES} tries"):
            await rebuild_listings(context)
    assert len(lines) == TRIES - 1
    assert await day_units(indexer) == [kept[0], (99, 99)]
    assert await rebuild_listings(RebuildContext(rebuilder, lambda: NOW_MS)) == len(kept)
    assert await day_units(indexer) == kept


async def test_indexing_that_waits_for_a_swap_is_refused_as_a_database_that_is_away(
    indexer: Database, rebuilder: Database
) -> None:
    """So the worker of the indexer logs it, and begins again after a pause."""
    await some_sums(indexer)
    async with rebuilder.writing() as tx:
        await begin_next(tx)
    async with rebuilder.writing() as swapping:
        await load_kept(swapping)
        with pytest.raises(StoreUnavailable) as refused:
            async with indexer.writing() as indexing:
                await hold_live(indexing)
    assert type(refused.value) is RowsLocked
    async with indexer.writing() as indexing:
        assert await hold_live(indexing) == 0


async def test_a_rebuild_that_stops_within_its_swap_does_not_stop_indexing(
    monkeypatch: pytest.MonkeyPatch, indexer: Database, rebuilder: Database
) -> None:
    await some_sums(indexer)
    spoiled = await spoil(indexer)
    monkeypatch.setattr("foretell.store.index.lock_waits.LOCK_S", PATIENT_S)
    monkeypatch.setattr("foretell.store.index.lock_waits.IDLE_S_MAX", LOCK_S)
    swapping, goes_on = asyncio.Event(), asyncio.Event()

    async def stop(tx: Transaction, generation: int) -> None:
        swapping.set()
        await goes_on.wait()
        await forget_cursors(tx, generation)

    monkeypatch.setattr("foretell.indexer.rebuild.forget_cursors", stop)
    rebuilding = asyncio.create_task(
        rebuild_sums(RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX))
    )
    await asyncio.wait({rebuilding, asyncio.create_task(swapping.wait())}, return_when=FIRST)
    async with indexer.writing() as indexing:
        assert await hold_live(indexing) == 0
    goes_on.set()
    with pytest.raises(StoreUnavailable):
        await rebuilding
    assert await dump_sums(indexer) == spoiled


async def test_a_rebuild_does_not_begin_beside_a_removal_that_would_take_its_rows(
    indexer: Database, rebuilder: Database
) -> None:
    """The lock of a session ends with its connection, even if its process goes on."""
    await some_sums(indexer)
    await rebuild_sums(RebuildContext(rebuilder, lambda: NOW_MS, ROWS_MAX))
    async with indexer.writing() as removing:
        await remove_unread(removing, 1)
        with pytest.raises(RowsLocked):
            async with rebuilder.writing() as beginning:
                await begin_next(beginning)

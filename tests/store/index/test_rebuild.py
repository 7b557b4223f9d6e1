"""A rebuild of the sums by wallet, looked at after each of its steps."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_word
from tests.store.live_sums import Dump, dump_sums
from typing_extensions import override

from foretell.domain.errors.storage import RebuildOvertaken, RebuildRunning, SumsReplaced
from foretell.indexer.rebuild import Pacing, RebuildContext, RebuiltSums, rebuild_sums
from foretell.store.database import Database
from foretell.store.index.blocks import Block, load_last_block, record_blocks
from foretell.store.index.generation_rows import BY_PERIOD
from foretell.store.index.generations import begin_next, load_next, of_generation
from foretell.store.index.rankings.history import load_last_change
from foretell.store.index.trading_totals import tables_of
from foretell.store.index.unwind import unwind
from foretell.store.rebuild_lock import rebuild_lock
from foretell.store.tables import activities, metadata, standings, trading_totals

pytestmark = pytest.mark.anyio

ROWS_MAX: Final = 2
WALLETS: Final = 5
FEW_WALLETS: Final = 2
"""Where each step is the end of a whole rebuild."""
MORE_WALLETS: Final = 25
TRADES_EACH: Final = 8
"""Steps between trades that are too many for one step."""


class Watched(Pacing):
    """Pauses that look at the tables, or end the rebuild."""

    def __init__(self, look: Callable[[int], Awaitable[None]]) -> None:
        super().__init__()
        self.steps = 0
        self._look = look

    @override
    async def pause(self) -> None:
        self.steps += 1
        await self._look(self.steps)


class Killed(Exception):
    """The process ended after a step."""


async def rebuild(
    database: Database, look: Callable[[int], Awaitable[None]], rows_max: int = ROWS_MAX
) -> RebuiltSums:
    context = RebuildContext(database, lambda: NOW_MS, rows_max, pacing=Watched(look))
    return await rebuild_sums(context)


async def some_sums(database: Database, wallets: int = WALLETS) -> Dump:
    """Write a trade, a position and a win for each wallet, and return the sums that are kept of them."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 60, 62)
        for number in range(wallets):
            await rows.buy(f"trader {number}", "rain", 2 * TOKEN, (1 + number) * TOKEN)
            await rows.hold(f"trader {number}", "rain", TOKEN, TOKEN, realized_units=1 + number)
            await rows.hold(f"winner {number}", "rain", 0, 0, realized_units=1 + number)
    await keep_rankings(database)
    kept = await dump_sums(database)
    assert all(kept.values())
    return kept


async def spoil(database: Database) -> Dump:
    async with database.writing() as tx:
        await tx.execute(standings.update().values(gain_units=1))
        await tx.execute(trading_totals.update().values(trades=100))
    return await dump_sums(database)


async def rows_of_all_generations(database: Database) -> int:
    totals = *tables_of(0).all, *tables_of(1).all
    async with database.reading() as tx:
        counts = [sa.select(sa.func.count()).select_from(each) for each in (*BY_PERIOD, *totals)]
        return sum([int(await tx.scalar(each)) for each in counts])


async def test_readers_have_the_sums_of_one_generation_after_every_step(
    database: Database,
) -> None:
    kept = await some_sums(database)
    spoiled = await spoil(database)
    seen: list[bool] = []

    async def look(_: int) -> None:
        found = await dump_sums(database)
        assert found in (spoiled, kept)
        seen.append(found == kept)

    await rebuild(database, look)
    assert seen == sorted(seen), "the new sums stay"
    assert seen.count(False) > WALLETS
    assert await dump_sums(database) == kept


async def test_the_block_of_the_new_sums_is_the_last_one_with_a_change(
    database: Database,
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "indexer.md").read_text()
    assert "prints the last block with a change (`swapped at block`)" in page
    await some_sums(database)
    async with database.writing() as tx:
        last = await load_last_change(tx)
        later = Block(last + 20, a_word("later"), a_word("parent"), NOW_S)
        await record_blocks(tx, [later])

    async def look(_: int) -> None:
        """Change nothing."""

    assert (await rebuild(database, look)).block_number == last
    async with database.reading() as tx:
        assert await load_last_block(tx) == later


async def test_a_rebuild_that_ends_after_any_step_changes_nothing_and_leaves_nothing(
    database: Database,
) -> None:
    kept = await some_sums(database, FEW_WALLETS)
    spoiled = await spoil(database)
    rows = await rows_of_all_generations(database)
    steps, is_live = 0, False
    while not is_live:
        steps += 1

        async def end(step: int, last: int = steps) -> None:
            if step == last:
                raise Killed

        try:
            await rebuild(database, end)
            break
        except Killed:
            found = await dump_sums(database)
            is_live = found == kept
            assert is_live or found == spoiled
    assert steps > FEW_WALLETS
    assert await rows_of_all_generations(database) > rows

    lines: list[str] = []
    context = RebuildContext(database, lambda: NOW_MS, ROWS_MAX, report=lines.append)
    await rebuild_sums(context)
    assert any("an unfinished rebuild had left" in line for line in lines)
    assert await dump_sums(database) == kept
    assert await rows_of_all_generations(database) == rows


async def test_trades_that_arrive_after_any_step_are_in_the_sums(database: Database) -> None:
    await some_sums(database)

    async def trade(step: int) -> None:
        if step < WALLETS:
            async with database.writing() as tx:
                rows = Rows(tx)
                await rows.buy(f"late {step}", "rain", TOKEN, TOKEN, block_number=100 + step)
                await rows.hold(f"late {step}", "rain", TOKEN, TOKEN, block_number=100 + step)

    await rebuild(database, trade)
    rebuilt = await dump_sums(database)
    await keep_rankings(database)
    assert len(rebuilt["trading_totals"]) == 2 * WALLETS - 1
    assert rebuilt["trading_totals"] == (await dump_sums(database))["trading_totals"]

    async def nothing(_: int) -> None:
        """Change nothing."""

    kept = await dump_sums(database)
    await rebuild(database, nothing)
    await keep_rankings(database)
    assert await dump_sums(database) == kept


async def test_a_reorganization_between_two_steps_unwinds_the_next_generation(
    database: Database,
) -> None:
    """The totals of the next generation come again from the block that stays, to a trade that took others' place."""
    await some_sums(database)
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in (96, 98, 100):
            await rows.buy("late", "rain", TOKEN, TOKEN, block_number=number)
    unwound: list[int] = []

    async def reorganize(_: int) -> None:
        async with database.writing() as tx:
            following = await load_next(tx)
            if unwound or following is None or following.block_number < 100:
                return
            unwound.append(following.block_number)
            await unwind(tx, 95)
            await Rows(tx).buy("late", "rain", TOKEN, TOKEN, block_number=97)

    generation = (await rebuild(database, reorganize)).generation
    assert unwound == [100]
    totals = tables_of(generation).totals.current
    async with database.reading() as tx:
        added = await tx.scalar(sa.select(sa.func.sum(totals.c.trades)))
        written = await tx.scalar(sa.select(sa.func.count()).select_from(activities))
    assert added == written == WALLETS + 1


async def test_an_index_that_grows_faster_ends_the_rebuild(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await some_sums(database)
    monkeypatch.setattr("foretell.indexer.rebuild.CATCH_UPS_MAX", 3)

    async def trade(step: int) -> None:
        if step % TRADES_EACH:
            return
        async with database.writing() as tx:
            rows = Rows(tx)
            for number in range(1 + ROWS_MAX):
                block_number = 1_000 * step + number
                name = f"late {block_number}"
                await rows.buy(name, "rain", TOKEN, TOKEN, block_number=block_number)
                await rows.hold(name, "rain", TOKEN, TOKEN, block_number=block_number)

    with pytest.raises(RebuildOvertaken, match="3 rounds"):
        await rebuild(database, trade)
    assert (await dump_sums(database))["standings"] == kept["standings"]


async def test_a_rebuild_whose_place_another_took_ends(database: Database) -> None:
    kept = await some_sums(database)

    async def begin_another(step: int) -> None:
        if step == WALLETS:
            async with database.writing() as tx:
                await begin_next(tx)

    with pytest.raises(SumsReplaced):
        await rebuild(database, begin_another)
    assert await dump_sums(database) == kept


async def test_one_process_rebuilds_at_a_time(database: Database) -> None:
    async with rebuild_lock(database), Database(database.url) as other:
        with pytest.raises(RebuildRunning, match="another process rebuilds"):
            async with rebuild_lock(other):
                raise AssertionError("both have the lock")
    async with rebuild_lock(database):
        pass


async def test_a_step_changes_no_more_rows_when_there_are_more_wallets(
    database: Database,
) -> None:
    """The rows of a transaction are those that it locks; SQLite has one writer."""

    async def largest(wallets: int) -> int:
        await some_sums(database, wallets)
        rows, changed = [await rows_of_all_generations(database)], []

        async def count(_: int) -> None:
            rows.append(await rows_of_all_generations(database))
            changed.append(abs(rows[-1] - rows[-2]))

        await rebuild(database, count, rows_max=5)
        return max(changed)

    few = await largest(WALLETS)
    await empty(database)
    assert await largest(MORE_WALLETS) <= few


async def empty(database: Database) -> None:
    async with database.writing() as tx:
        for table in reversed(metadata.sorted_tables):
            if table.name != "alembic_version":
                await tx.execute(table.delete())


async def test_keys_of_a_generation_are_its_own(database: Database) -> None:
    kept = await some_sums(database)

    async def nothing(_: int) -> None:
        """Change nothing."""

    generation = (await rebuild(database, nothing)).generation
    async with database.reading() as tx:
        for table in BY_PERIOD:
            others = sa.not_(of_generation(table, generation))
            assert not await tx.all(sa.select(table).where(others))
    assert await dump_sums(database) == kept

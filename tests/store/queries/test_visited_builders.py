"""Reads of builders visit no more rows when the builders traded ten times as often, for more wallets and on more days."""

import shutil
from pathlib import Path
from typing import Final

import pytest
from tests.rigs.applications import an_app
from tests.rigs.builders.sums import a_code
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.rigs.values import NOW_MS, TOKEN, an_address
from tests.store.queries.grown import GROWTH_MAX
from tests.store.queries.recorded_queries import recorded, sqlite_steps

from foretell.data.routes import build_app
from foretell.domain.portfolio.builder_volumes import TradedFills, UserDay, day_of
from foretell.store.database import Database
from foretell.store.scratch import analyze
from foretell.store.trading.builder_days import add_traded

pytestmark = pytest.mark.anyio

BUILDERS: Final = 12
SIZES: Final = ((40, 2), (400, 5))
"""The days and wallets of each builder."""
READS: Final = (
    "/builders/leaderboard",
    "/builders/leaderboard?timePeriod=MONTH",
    "/builders/leaderboard?timePeriod=ALL",
    "/builders/volume?timePeriod=ALL&limit=20",
    "/builders/volume?timePeriod=ALL&limit=20&offset=15",
    f"/builders/volume?timePeriod=ALL&builder={a_code(1)}&limit=20",
)


async def grow(path: Path, days: int, wallets: int) -> None:
    changes = {
        UserDay(
            a_code(number), an_address(f"{number} {wallet}"), day_of(NOW_MS) - day
        ): TradedFills((number + wallet) * TOKEN, wallet + 1)
        for number in range(BUILDERS)
        for wallet in range(wallets)
        for day in range(days)
    }
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        async with database.writing() as tx:
            await add_traded(tx, changes)
        await analyze(database)


async def test_reads_of_builders_cost_what_the_number_of_builders_costs(
    empty_database: Path, tmp_path: Path
) -> None:
    steps: dict[str, list[int]] = {read: [] for read in READS}
    for days, wallets in SIZES:
        path = Path(shutil.copy(empty_database, tmp_path / f"{days}.db"))
        await grow(path, days, wallets)
        async with Database(f"sqlite+aiosqlite:///{path}") as database:
            reader = Reader(an_app(build_app, a_data_context(database, BLOBS, lambda: NOW_MS)))
            for read in READS:
                with recorded() as queries:
                    assert len(await reader.get(read)) >= BUILDERS
                steps[read].append(sqlite_steps(path, queries))
    assert {read: found for read, found in steps.items() if found[1] > GROWTH_MAX * found[0]} == {}


async def test_the_ranks_of_a_day_do_not_visit_all_builders_of_it(
    empty_database: Path, tmp_path: Path
) -> None:
    """A finding: anyone can name a new builder in each order, and each row of a page passed over all of them."""
    steps: list[int] = []
    for builders in (100, 1_000):
        path = Path(shutil.copy(empty_database, tmp_path / f"{builders}.db"))
        changes = {
            UserDay(a_code(number), an_address("alice"), day_of(NOW_MS)): TradedFills(number + 1, 1)
            for number in range(builders)
        }
        async with Database(f"sqlite+aiosqlite:///{path}") as database:
            async with database.writing() as tx:
                await add_traded(tx, changes)
            await analyze(database)
            reader = Reader(an_app(build_app, a_data_context(database, BLOBS, lambda: NOW_MS)))
            with recorded() as queries:
                found = await reader.get("/builders/volume?limit=50")
        assert [int(row["rank"]) for row in found] == list(range(1, 51))
        steps.append(sqlite_steps(path, queries))
    assert steps[1] <= GROWTH_MAX * steps[0], steps

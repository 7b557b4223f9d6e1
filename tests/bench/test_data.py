import io
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foretell.bench.data import DataPlan, run_bench_data
from foretell.bench.rigs.reads.history import NOW_S, SIZE_UNITS, SUMMED, History, HistoryPlan
from foretell.domain.portfolio.periods import Period
from foretell.indexer.rankings import RankingContext, rebuild_sums
from foretell.store.database import Database
from foretell.store.index.rankings.sums import empty_rankings
from foretell.store.migrations import upgrade
from foretell.store.tables import traded_markets, trading_total_changes, trading_totals

PLAN = HistoryPlan(fills=4_000, wallets=1_000, markets=200)


@pytest.mark.anyio
async def test_a_generated_history_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "foretell.db"
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        await upgrade(database)
        await History(PLAN).write(database)
        await rebuild_sums(RankingContext(database, lambda: NOW_S * 1000, 1_000))
    with sqlite3.connect(path) as connection:

        def value(sql: str) -> int:
            return int(connection.execute(sql).fetchone()[0])

        minted = value("SELECT sum(units) FROM locked_collateral")
        assert value("SELECT sum(size_units) FROM positions") == 2 * minted
        assert value("SELECT sum(units) FROM balances") == 2 * minted
        assert value("SELECT count(*) FROM activities") == PLAN.fills
        traded = value("SELECT sum(volume_units) FROM standings WHERE period = 0 AND category = ''")
        assert traded == value("SELECT sum(cost_units) FROM activities")
        assert value("SELECT sum(volume_units) FROM trading_totals") == traded
        assert value("SELECT sum(size_units) FROM trades") == PLAN.fills // 2 * SIZE_UNITS


@pytest.mark.anyio
async def test_generated_sums_equal_those_of_the_indexer(each_database_url: str) -> None:
    async with Database(each_database_url) as database:
        history = History(PLAN)
        await history.write(database)
        await rebuild_sums(RankingContext(database, lambda: NOW_S * 1000, 1_000))
        built = await _sums(database)
        async with database.writing() as tx:
            await empty_rankings(tx)
        await history.write_sums(database)
        written = await _sums(database)
    assert built == written
    assert all(built.values())
    assert {row[0] for row in built["standings"]} == {*Period}
    assert len({row[0] for row in built["wins"]}) > 1


async def _sums(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    async with database.reading() as tx:
        return {
            table.name: sorted(map(tuple, await tx.all(table.select())), key=repr)
            for table in (*SUMMED, traded_markets, trading_total_changes, trading_totals)
        }


@pytest.mark.parametrize(("bar", "missed"), [(1_000.0, 0), (0.0, 1)])
def test_cheap_reads_are_measured_beside_those_of_a_stranger(
    monkeypatch: pytest.MonkeyPatch, bar: float, missed: int
) -> None:
    monkeypatch.setattr("foretell.bench.data.STRANGER_RATIO_MAX", bar)
    file = io.StringIO()
    plan = DataPlan(fills=(2_000,), wallets=1_000, markets=100, calls=1, is_stranger=True)
    assert run_bench_data(plan, Console(file=file, width=200)) == missed
    found = re.search(r"p99 ([\d.]+) ms alone, ([\d.]+) ms beside .* (\d+) dear", file.getvalue())
    assert found is not None
    assert min(float(each) for each in found.groups()) > 0


def test_reads_are_printed_beside_bare_sql() -> None:
    file = io.StringIO()
    plan = DataPlan(fills=(2_000,), wallets=1_000, markets=100, calls=1)
    run_bench_data(plan, Console(file=file, width=200))
    printed = file.getvalue()
    assert "2,000 fills on SQLite" in printed
    assert "leaderboard DAY PNL" in printed
    assert "bars missed" in printed

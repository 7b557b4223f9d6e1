import io
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from tests.rigs.builders.sums import kept_sums, slow_sums
from tests.rigs.read_apis import keep_rankings
from tests.store.live_sums import dump_sums, rebuild

from foretell.bench.data import CHEAP, DataPlan, run_bench_data
from foretell.bench.rigs.page import check_page
from foretell.bench.rigs.reads.figures import (
    HEADS,
    ReadFigure,
    ReadTimes,
    figures_of,
    missed_words,
    table_of_reads,
)
from foretell.bench.rigs.reads.history import NOW_S, SUMMED, History, HistoryPlan
from foretell.bench.rigs.reads.matches import SIZE_UNITS
from foretell.domain.errors.command import BenchFailed
from foretell.domain.portfolio.periods import Period
from foretell.store.bulk_totals import fill_trading_totals
from foretell.store.database import Database
from foretell.store.index.generations import days_of, load_live, of_generation
from foretell.store.migrations import upgrade

PLAN = HistoryPlan(fills=4_000, wallets=1_000, markets=200)


@pytest.mark.anyio
async def test_a_generated_history_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "foretell.db"
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        await upgrade(database)
        await History(PLAN).write(database)
        await fill_trading_totals(database)
        await keep_rankings(database, NOW_S * 1000, 1_000)
    with closing(sqlite3.connect(path)) as connection:

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
async def test_the_wallet_with_many_positions_has_as_many_that_are_closed(tmp_path: Path) -> None:
    """A finding: closed positions were measured for a wallet with one."""
    path = tmp_path / "foretell.db"
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        await upgrade(database)
        history = History(HistoryPlan(fills=6_000, wallets=1_000, markets=1_500))
        await history.write(database)
    with closing(sqlite3.connect(path)) as connection:
        found = f"FROM positions WHERE wallet = '{history.names.whale}' AND size_units"
        assert connection.execute(f"SELECT count(*) {found} > 0").fetchone() == (1_000,)
        closed = "SELECT realized_units > 0, count(*)"
        wins = dict(connection.execute(f"{closed} {found} = 0 GROUP BY 1").fetchall())
        assert sum(wins.values()) == 1_000
        assert min(wins.values()) > 100
        sold = "SELECT maker, count(*) FROM fills WHERE side = 'SELL' GROUP BY 1"
        assert connection.execute(sold).fetchall() == [(history.names.whale, 1_000)]


@pytest.mark.anyio
async def test_generated_volumes_of_builders_are_those_of_the_generated_trades(
    each_database_url: str,
) -> None:
    async with Database(each_database_url) as database:
        await History(PLAN).write(database)
        kept = await kept_sums(database)
        assert kept == await slow_sums(database)
        assert all(kept.values())


@pytest.mark.anyio
async def test_generated_sums_equal_those_of_the_indexer(each_database_url: str) -> None:
    async with Database(each_database_url) as database:
        history = History(PLAN)
        await history.write(database)
        await history.write_sums(database)
        written = await _sums(database)
        await rebuild(database, NOW_S * 1000)
        built = await _sums(database)
    assert built == written
    assert all(built.values())
    assert {row[0] for row in built["standings"]} == {*Period}
    assert len({row[0] for row in built["wins"]}) > 1


async def _sums(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows that are live, with the days of their periods."""
    totals = await dump_sums(database)
    async with database.reading() as tx:
        live = await load_live(tx)
        summed = {
            table.name: await tx.all(table.select().where(of_generation(table, live)))
            for table in SUMMED
        }
    decoded = {name: [(days_of(row[0]), *row[1:]) for row in rows] for name, rows in summed.items()}
    return totals | {name: sorted(rows, key=repr) for name, rows in decoded.items()}


@pytest.mark.parametrize(("bar", "missed"), [(1_000.0, 0), (0.0, 2)])
def test_cheap_reads_are_measured_beside_those_of_a_stranger(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bar: float, missed: int
) -> None:
    monkeypatch.setattr("foretell.bench.rigs.reads.stranger_figures.STRANGER_RATIO_MAX", bar)
    monkeypatch.setattr("foretell.bench.rigs.reads.stranger.PHASES", 2)
    page, file = tmp_path / "page.md", io.StringIO()
    mark = "<!-- foretell bench data --stranger, SQLite:"
    page.write_text(f"{mark} begin -->\nreplaced\n{mark} end -->\n")
    plan = DataPlan((1_000, 2_000), 1_000, 100, calls=1, is_stranger=True, page=page)
    assert run_bench_data(plan, Console(file=file, width=200)) == missed
    seen = (
        r"p99 of 5 cheap reads is ([\d.]+) ms alone and ([\d.]+) ms beside a stranger's (\d+) dear reads \(\d+ more"
        r" refused\): ratio ([\d.]+); bar [\d,]+, \S+ Of '([^']+)' alone it is ([\d.]+), the largest of a single one\."
    )
    verdict = f"bar {bar:g}, {'**missed**' if missed else 'met'}. Of '"
    for text in (" ".join(each.split()) for each in (file.getvalue(), page.read_text())):
        assert text.count(verdict) == 2
        found = re.findall(seen, text)
        assert len(found) == 2
        assert {name for *_, name, _ in found} <= CHEAP
        assert min(float(each) for *numbers, _, worst in found for each in (*numbers, worst)) > 0
        kept = re.findall(
            r"The serving process then has (\d+) MB, that of dear reads (\d+) MB", text
        )
        assert len(kept) == 2
        assert min(int(each) for both in kept for each in both) > 0
        grown = re.search(
            r"At 2,000 fills the serving process has ([\d.]+) times the memory that it has at 1,000, that of dear"
            r" reads ([\d.]+) times",
            text,
        )
        assert grown is not None
        assert min(float(each) for each in grown.groups()) > 0
    row = r"^\| ([^|]+) \| 2 \| [\d.]+ ms \| [\d.]+ ms \| [\d.]+ \|$"
    assert sorted(re.findall(row, page.read_text(), re.MULTILINE)) == sorted([*CHEAP, *CHEAP])
    assert "SQLite, 1,000 and 2,000 fills of 1,000 wallets in 100 markets" in " ".join(
        page.read_text().split()
    )


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_reads_are_printed_beside_bare_sql_and_written_to_a_page(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = None if database == "SQLite" else request.getfixturevalue("postgres_url")
    page, file = tmp_path / "page.md", io.StringIO()
    mark = f"<!-- foretell bench data, {database}:"
    page.write_text(f"Before.\n{mark} begin -->\nreplaced\n{mark} end -->\nAfter.\n")
    plan = DataPlan((1_000, 2_000), 1_000, 100, calls=1, postgres=server, page=page)
    run_bench_data(plan, Console(file=file, width=200))
    printed, written = file.getvalue(), page.read_text()
    assert f"2,000 fills on {database}" in printed
    assert "leaderboard DAY PNL" in printed
    assert "bars missed" in printed
    assert written.startswith("Before.\n")
    assert written.endswith(f"{mark} end -->\nAfter.\n")
    assert "replaced" not in written
    row = r"^\|[^|]+\|( [\d.,]+ ms \|){4}( [\d.]+ \|){3}( (\d rounds, [\d.]+ cores)? ?\|)"
    assert len(re.findall(row, written, re.MULTILINE)) > 20
    chart = tmp_path / f"data-reads-{database.lower()}.svg"
    assert f"({chart.name})" in written
    ET.fromstring(chart.read_text())


def test_a_page_without_a_place_is_refused_before_a_history_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("")
    with pytest.raises(BenchFailed, match="has no place for the figures"):
        run_bench_data(DataPlan(page=page), Console(file=io.StringIO()))


def test_the_page_of_performance_has_a_place_for_both_databases() -> None:
    for name in ("SQLite", "PostgreSQL"):
        path = Path(__file__).parents[2] / "docs" / "reference" / "performance.md"
        check_page(path, f"foretell bench data, {name}")


TIMES = ReadTimes("read", p50_ms=9.0, p99_ms=40.0, cpu_ms=2.0, bare_ms=3.0)


@pytest.mark.parametrize(
    ("times", "growth", "others", "missed"),
    [
        (TIMES, 1.3, 0.0, []),
        (TIMES, None, 0.0, []),
        (TIMES._replace(p99_ms=50.1), 1.0, 0.1, ["p99"]),
        (TIMES._replace(p99_ms=50.1), 1.0, 0.2, []),
        (TIMES._replace(p50_ms=9.1), 1.0, 0.2, ["p50 / bare"]),
        (TIMES._replace(p50_ms=0.5, bare_ms=0.1), 1.0, 0.0, []),
        (TIMES, 1.31, 0.0, ["growth"]),
    ],
)
def test_a_read_misses_a_bar_that_it_is_above(
    times: ReadTimes, growth: float | None, others: float, missed: list[str]
) -> None:
    assert ReadFigure(times._replace(others_cores=others), growth).missed == missed


def test_a_row_says_how_often_a_read_was_measured_and_how_disturbed_the_round_was_that_counts() -> (
    None
):
    again = ReadFigure(TIMES._replace(others_cores=0.25, rounds=5), None)
    assert dict(zip(HEADS, again.cells(), strict=True))["repeated"] == "5 rounds, 0.25 cores"
    assert dict(zip(HEADS, ReadFigure(TIMES, None).cells(), strict=True))["repeated"] == ""


def test_missed_reads_are_named_with_their_bars() -> None:
    slow = ReadFigure(TIMES._replace(name="slow", p99_ms=50.1, p50_ms=9.1), 1.0)
    grown = ReadFigure(TIMES._replace(name="grown"), 1.31)
    assert missed_words([slow, ReadFigure(TIMES, 1.0), grown]) == (
        ": slow (p99, p50 / bare); grown (growth)"
    )
    assert missed_words([ReadFigure(TIMES, 1.0)]) == ""


def test_a_narrow_console_has_the_whole_names_of_reads() -> None:
    """A finding: names were cut at eighty columns."""
    name, file = "batch-prices-history of twenty tokens", io.StringIO()
    Console(file=file, width=80).print(table_of_reads([ReadFigure(TIMES._replace(name=name), 1.0)]))
    cells = [line.split("│")[1].strip() for line in file.getvalue().splitlines() if "│" in line]
    assert "".join(cells).replace(" ", "") == name.replace(" ", "")


@pytest.mark.parametrize(("is_sqlite", "growth"), [(True, 2.0), (False, 3.0)])
def test_growth_is_of_the_processor_where_the_database_is_in_the_process(
    *, is_sqlite: bool, growth: float
) -> None:
    larger = TIMES._replace(cpu_ms=4.0, p50_ms=27.0)
    [figure] = figures_of([[TIMES], [larger]], is_sqlite=is_sqlite)
    assert figure.growth == growth


def test_the_p50_at_both_sizes_and_its_growth_are_printed_whatever_growth_is_judged() -> None:
    larger = TIMES._replace(cpu_ms=4.0, p50_ms=27.0)
    [figure] = figures_of([[TIMES], [larger]], is_sqlite=True)
    row = dict(zip(HEADS, figure.cells(), strict=True))
    assert row["p50, fewest"] == f"{TIMES.p50_ms:.2f} ms"
    assert row["p50"] == "27.00 ms"
    assert row["p50 growth"] == f"{27 / TIMES.p50_ms:.2f}"
    assert row["growth"] == f"{4 / TIMES.cpu_ms:.2f}"
    [alone] = figures_of([[larger]], is_sqlite=True)
    assert alone.cells()[2] == alone.cells()[6] == alone.cells()[7] == ""

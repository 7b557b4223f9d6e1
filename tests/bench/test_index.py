import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from tests.rigs.sandbox import catch_up

from foretell.bench.index import IndexPlan, run_bench_index
from foretell.bench.rigs.figures import INDEX, INDEX_MEMORY
from foretell.bench.rigs.index.chain import ChainPlan
from foretell.bench.rigs.index.node import generated_node
from foretell.bench.rigs.index.rounds import IndexResult, IndexRound, Times
from foretell.bench.rigs.world import deployment_without_chain
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import RpcRefused
from foretell.domain.errors.command import BenchFailed
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.migrations import upgrade

CHAIN = ChainPlan(wallets=60, markets=20, matches_per_block=3, head=1_000)


@pytest.mark.anyio
async def test_a_generated_chain_adds_up_and_its_index_is_exact(tmp_path: Path) -> None:
    deployment, plan = deployment_without_chain(), CHAIN._replace(head=40)
    with generated_node(plan) as node:
        async with (
            Rpc(node.url) as rpc,
            Database(f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}") as database,
        ):
            await upgrade(database)
            logs = LogReader(rpc, deployment.kind_by_contract())
            reader, contracts = Reader(rpc, deployment), IndexedContracts.of(deployment)
            step = await catch_up(IndexerContext(database, reader, logs, contracts, 0))
            report = await verify_data(database, rpc, deployment)
            with pytest.raises(RpcRefused):
                await rpc.call("eth_chainId")
    assert (step.head_number, step.ignored) == (40, {})
    assert [str(each) for each in report.differences] == []
    matches = (plan.head - plan.first_match + 1) * plan.matches_per_block
    assert report.rows["exchange_fills"] == 2 * matches
    assert report.rows["positions"] > plan.wallets


@pytest.mark.anyio
async def test_the_node_counts_the_logs_that_it_serves_and_keeps_the_bodies() -> None:
    first = CHAIN.first_match
    with generated_node(CHAIN) as node:
        async with Rpc(node.url) as rpc:
            logs = LogReader(rpc, deployment_without_chain().kind_by_contract())
            assert node.prepare(first, first + 9) == 10 * (12 + 7 + 12)
            node.record()
            blocks = await logs.read(first, first + 9)
            bodies = node.recorded()
    assert sum(len(each.logs) for each in blocks) == 10 * (12 + 7 + 12)
    assert sum(each.ignored for each in blocks) == 0
    assert len(bodies) == 3
    assert sorted(body.count(b'"removed"') for body in bodies) == [0, 310, 310]


def test_a_run_prints_its_ratio_its_rate_and_its_memory() -> None:
    file = io.StringIO()
    measured = run_bench_index(IndexPlan(2, CHAIN, blocks=10), Console(file=file, width=200))
    printed = file.getvalue()
    assert [each.figure for each in measured] == [INDEX, INDEX_MEMORY]
    assert min(each.seen for each in measured) > 0
    assert f"index: {measured[0].seen:.2f} of decoding the same JSON alone" in printed
    assert re.search(
        r"[\d,]+ logs/s from the node into SQLite; the head is block 1,000; a log", printed
    )
    assert f"{measured[1].seen:.2f} of that after half the rounds" in printed
    rows = re.findall(r"^│ (\d) +│ 310 ", printed, re.MULTILINE)
    assert rows == ["1", "2"]


def test_a_run_into_postgresql_names_it(postgres_url: str) -> None:
    file = io.StringIO()
    run_bench_index(IndexPlan(2, CHAIN, 10, postgres_url), Console(file=file, width=200))
    assert "logs/s from the node into PostgreSQL" in file.getvalue()


def test_a_chain_of_fewer_blocks_than_the_rounds_need_is_refused() -> None:
    with pytest.raises(BenchFailed, match="1,000 blocks"):
        run_bench_index(IndexPlan(100, CHAIN, blocks=10), Console(file=io.StringIO()))


def test_the_ratio_is_the_time_of_bare_json_over_that_of_reading() -> None:
    times = Times(2.0, 1.0), Times(0.5, 0.4), Times(4.0, 3.0)
    measured = IndexRound(100, 1_000, *times, 1)
    assert (measured.ratio, measured.cpu_ratio) == (0.25, 0.4)


def a_round(index_s: float) -> IndexRound:
    return IndexRound(100, 1_000, Times(2, 1), Times(1, 1), Times(index_s, index_s), 10**6)


def test_a_page_gets_the_rounds_and_a_chart(tmp_path: Path) -> None:
    page, name = tmp_path / "page.md", "foretell bench index, SQLite"
    page.write_text(f"before\n<!-- {name}: begin -->\nold\n<!-- {name}: end -->\nafter\n")
    plan = IndexPlan(2, CHAIN, blocks=10, page=page)
    measured = run_bench_index(plan, Console(file=io.StringIO()))
    written = page.read_text()
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "old" not in written
    assert re.search(r"^\| 2 \| 310 \|", written, re.MULTILINE)
    assert f"- index: {measured[0].seen:.2f} of decoding" in written
    assert "![Logs a second into SQLite by round](index-sqlite.svg)" in written
    assert (tmp_path / "index-sqlite.svg").read_text().count("<rect") == 3
    with pytest.raises(BenchFailed, match="has no place"):
        run_bench_index(plan._replace(postgres="postgresql://nowhere"), Console(file=io.StringIO()))


def test_of_many_rounds_a_page_shows_some() -> None:
    result = IndexResult([a_round(1)] * 41, "SQLite")
    assert [number for number, _ in result.shown()] == list(range(3, 42, 3))
    assert len(IndexResult([a_round(1)] * 20, "SQLite").shown()) == 20


def test_the_slowing_is_that_from_the_second_quarter_to_the_last_and_from_the_first() -> None:
    rounds = [a_round(seconds) for seconds in (9, 9, 2, 2, 5, 5, 3, 3)]
    result = IndexResult(rounds, "SQLite")
    assert (result.slowing, result.slowing_of_all) == (1.5, 3 / 9)

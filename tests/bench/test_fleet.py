"""`bench order --workers`, and its fleet, tables and node."""

import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from rich.console import Console
from tests.rigs.in_process import Call
from tests.rigs.journals import query
from tests.rigs.values import a_key

from foretell.bench.rigs.fleet import Size, running_fleet
from foretell.bench.rigs.fleet_tables import own_database, parent_of_server, server_pids
from foretell.bench.rigs.machine import usage_with
from foretell.bench.rigs.order_rounds import OrderPlan
from foretell.bench.rigs.quiet_node import ZERO_WORD, quiet_node
from foretell.bench.rigs.world import make_world
from foretell.bench.scale import run_bench_scale
from foretell.domain.errors.command import BenchFailed

pytestmark = pytest.mark.xdist_group("bench fleet")

DATABASES = "SELECT count(*) FROM pg_database WHERE datname LIKE 'foretell_bench%'"


def test_a_fleet_is_printed_next_to_one_process_and_leaves_nothing(postgres_url: str) -> None:
    plan = OrderPlan(1, 100, 4, warm_up_orders=20, recoveries=100, syncs=5)
    file = io.StringIO()
    run_bench_scale(plan, Size(1, 1), postgres_url, Console(file=file, width=200))
    printed = file.getvalue()
    many, one = (
        float(each.replace(",", "")) for each in re.findall(r"│ \d +│ ([\d,]+) +│", printed)
    )
    (ratio,) = re.findall(
        r"^order-scale: (\d+\.\d\d) orders a second by 1 proc", printed, re.MULTILINE
    )
    least, most = (many - 0.5) / (one + 0.5), (many + 0.5) / (one - 0.5)
    assert least - 0.005 <= float(ratio) <= most + 0.005, "all three are rounded"
    assert query(postgres_url, DATABASES) == [(0,)]


def test_a_fleet_that_cannot_start_fails_the_benchmark(postgres_url: str, tmp_path: Path) -> None:
    world = make_world(a_key("bench"))
    with (
        pytest.raises(BenchFailed, match="the fleet takes no orders"),
        running_fleet(world, tmp_path, postgres_url, Size(1, 1), start_deadline_s=0.0),
    ):
        pass
    assert query(postgres_url, DATABASES) == [(0,)]


def test_a_database_of_our_own_is_dropped_at_the_end(postgres_url: str) -> None:
    with own_database(postgres_url) as url:
        assert query(url, "SELECT current_database()") == [(f"foretell_bench_{os.getpid()}",)]
    assert query(postgres_url, DATABASES) == [(0,)]


@pytest.mark.parametrize(("program", "known"), [("postgres", 1), ("posters", 0)])
def test_the_parent_of_a_server_is_known_by_its_child(
    tmp_path: Path, program: str, known: int
) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    (tmp_path / program).symlink_to(sleep)
    with subprocess.Popen([str(tmp_path / program), "60"]) as child:
        while child.poll() is None and program not in Path(f"/proc/{child.pid}/stat").read_text():
            os.sched_yield()
        parent = parent_of_server(child.pid)
        child.kill()
    assert parent == known * os.getpid()


def test_the_use_of_a_server_on_this_machine_is_ours(postgres_url: str) -> None:
    assert usage_with(*server_pids(postgres_url)).own_s >= usage_with().own_s


def test_a_missing_server_fails_the_benchmark() -> None:
    url = "postgresql+asyncpg://u@127.0.0.1:1/none"
    with pytest.raises(BenchFailed, match="the database: "), own_database(url):
        pass


def test_a_fleet_without_a_server_is_refused(call: Call) -> None:
    called = call("bench", "order", "--workers", "2")
    assert called.code == 1
    assert called.err == "error: several processes need PostgreSQL; name a server with --postgres\n"


def test_the_quiet_node_answers_for_an_empty_chain() -> None:
    requests = [
        {"id": number, "method": method}
        for number, method in enumerate(("eth_chainId", "eth_call", "eth_getLogs"))
    ]
    with quiet_node() as url, httpx.Client(trust_env=False, timeout=60) as client:
        chain, word, unknown = client.post(url, json=requests).json()
        one = client.post(url, json=requests[0]).json()
    assert (chain, one["result"]) == (one, hex(80002))
    assert word["result"] == ZERO_WORD
    assert unknown["error"]["code"] == -32601

import io
import os
import re
import threading
from pathlib import Path

import pytest
from rich.console import Console
from tests.rigs.values import a_key

from foretell.bench import order
from foretell.bench.order import Round, run_bench_order
from foretell.bench.rigs import machine
from foretell.bench.rigs.cpu_profile import Spent, spent_by, spent_words
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.load import make_requests
from foretell.bench.rigs.machine import disturbance, undisturbed
from foretell.bench.rigs.world import make_world
from foretell.domain.errors.command import BenchFailed

ROUNDS = 2
ORDERS = 100


def test_a_run_prints_its_ratio_beside_its_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "RECOVERIES", 300)
    monkeypatch.setattr(order, "WARM_UP_ORDERS", 50)
    console = Console(file=io.StringIO(), width=200)
    run_bench_order(ROUNDS, ORDERS, 4, console)
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    assert "recoveries/s, one core" in told
    rows = re.findall(r"│ (\d) +│ ([\d,]+) +│ ([\d,]+) +│ (\d+\.\d\d) ", told)
    assert [int(number) for number, *_ in rows] == [1, 2]
    shown = [
        float(orders.replace(",", "")) / float(recoveries.replace(",", "")) - float(ratio)
        for _, orders, recoveries, ratio in rows
    ]
    assert max(map(abs, shown)) < 0.02
    (ratio,) = re.findall(
        r"^order-e2e: (\d+\.\d\d) durable, verified, matched orders", told, re.MULTILINE
    )
    assert float(ratio) > 0
    (spent,) = re.findall(r"^order-cpu: (\d+\.\d) recoveries of processor time", told, re.MULTILINE)
    assert float(spent) > 0
    assert re.search(r"p50 \d+\.\d ms, p99 \d+\.\d ms \(median of [12] rounds of 100, 4 conn", told)


def a_round(others_cores: float = 0.0) -> Round:
    return Round(5_000, 20_000, 1, 2, 0.2, others_cores, Spent(4.0, 1.0, 1.2, 0.5))


def test_what_orders_used_is_told_of_each_in_recoveries() -> None:
    before, after = Spent(1.0, 1.0, 0.0, 2.0), Spent(1.5, 1.1, 0.2, 2.0)
    spent = before.until(after).in_recoveries(orders=1_000, recoveries_per_s=10_000)
    assert spent == pytest.approx((5.0, 1.0, 2.0, 0.0))
    assert spent_words([spent]).startswith(
        "order-cpu: 5.0 recoveries of processor time an order in the thread that serves, 1.0 in"
    )


def test_what_a_thread_used_is_told_apart_from_what_the_process_began_with() -> None:
    before = spent_by([os.getpid()])
    burning = threading.Thread(target=lambda: sum(range(20_000_000)))
    burning.start()
    burning.join()
    used = before.until(spent_by([os.getpid()]))
    assert used.beside_s > 0.05
    assert used.client_s >= used.beside_s


def test_the_ratio_is_of_orders_to_recoveries() -> None:
    assert a_round().ratio == 0.25


def test_rounds_that_others_disturbed_do_not_count() -> None:
    quiet, busy = a_round(0.05), a_round(0.5)
    assert undisturbed([busy, quiet, busy]) == [quiet]
    assert disturbance([busy, quiet, busy]).startswith("2 of 3 rounds were disturbed")


def test_nothing_is_said_of_rounds_that_nobody_disturbed() -> None:
    assert disturbance([a_round()]) == ""


def test_rounds_all_of_which_were_disturbed_count_and_say_so() -> None:
    busy = a_round(0.5)
    assert undisturbed([busy, busy]) == [busy, busy]
    assert disturbance([busy, busy]).startswith("every round was disturbed")


def test_no_two_orders_of_a_run_are_alike() -> None:
    world = make_world(a_key("bench"))
    requests = make_requests(world, "/clob", 50, 0, 1) + make_requests(world, "/clob", 50, 50, 1)
    assert len(set(requests)) == 100


def test_an_exchange_that_cannot_start_fails_the_benchmark(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(BenchFailed, match="did not start"), running_exchange(a_key("x"), nowhere):
        pass
    assert "StoreUnavailable" in capfd.readouterr().err

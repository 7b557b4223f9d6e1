import io
import os
import re
import threading
from pathlib import Path

import pytest
from rich.console import Console
from tests.bench.printed_ratios import is_ratio
from tests.rigs.values import a_key

from foretell.bench.order import run_bench_order
from foretell.bench.rigs.cpu_profile import (
    ProcessorTime,
    median_time,
    processor_time_of,
    processor_time_words,
)
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.figures import CPU_ALL, CPU_SERVING
from foretell.bench.rigs.load import make_requests
from foretell.bench.rigs.machine import disturbance, undisturbed
from foretell.bench.rigs.order_rounds import OrderPlan, Round
from foretell.bench.rigs.world import make_world
from foretell.domain.errors.command import BenchFailed

PLAN = OrderPlan(rounds=2, orders=100, connections=4, warm_up_orders=50, recoveries=300)


def test_a_run_prints_its_ratio_next_to_its_ceiling() -> None:
    console = Console(file=io.StringIO(), width=200)
    measurements = run_bench_order(PLAN, console)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "recoveries/s, one core" in printed
    rows = re.findall(r"│ (\d) +│ ([\d,]+) +│ ([\d,]+) +│ (\d+\.\d\d) ", printed)
    assert [int(number) for number, *_ in rows] == [1, 2]
    for _, orders, recoveries, shown in rows:
        assert is_ratio(shown, *(float(each.replace(",", "")) for each in (orders, recoveries)))
    (ratio,) = re.findall(
        r"^order-e2e: (\d+\.\d\d) durable, verified, matched orders", printed, re.MULTILINE
    )
    assert measurements[0].seen > 0
    ((serving, whole),) = re.findall(
        r"^order-cpu: (\d+\.\d\d) recoveries of processor time .*, (\d+\.\d\d) in all processes",
        printed,
        re.MULTILINE,
    )
    assert 0 < float(serving) < float(whole)
    assert [(each.figure, f"{each.seen:.2f}") for each in measurements] == [
        ("order-e2e, 4 connections", ratio),
        (CPU_SERVING, serving),
        (CPU_ALL, whole),
    ]
    assert measurements[0].ceiling.endswith(" recoveries/s on one core")
    assert re.search(
        r"p50 \d+\.\d ms, p99 \d+\.\d ms \(median of [12] rounds of 100, 4 conn", printed
    )


def a_round(others_cores: float = 0.0) -> Round:
    return Round(5_000, 20_000, 1, 2, 0.2, others_cores, ProcessorTime(4.0, 1.0, 1.2, 0.5))


def test_processor_time_is_printed_in_recoveries_of_one_order() -> None:
    before, after = ProcessorTime(1.0, 1.0, 0.0, 2.0), ProcessorTime(1.5, 1.1, 0.2, 2.0)
    spent = before.until(after).in_recoveries(orders=1_000, recoveries_per_s=10_000)
    assert spent == pytest.approx((5.0, 1.0, 2.0, 0.0))
    assert processor_time_words(spent).startswith(
        "order-cpu: 5.00 recoveries of processor time an order in the thread that serves, 8.00 in all"
        " processes: 1.00 in other threads, 2.00 in processes that it started"
    )


def test_processor_time_of_rounds_is_the_median_of_each_part() -> None:
    rounds = [ProcessorTime(1, 5, 3, 1), ProcessorTime(2, 4, 3, 9), ProcessorTime(9, 6, 3, 2)]
    assert median_time(rounds) == (2, 5, 3, 2)


TICKS_S = 0.05
"""The kernel counts in ticks of 10 ms, and the counts are read one after the other."""


def test_processor_time_of_other_threads_is_counted_apart_from_the_main_one() -> None:
    before = processor_time_of([os.getpid()])
    burning = threading.Thread(target=lambda: sum(range(20_000_000)))
    burning.start()
    burning.join()
    used = before.until(processor_time_of([os.getpid()]))
    assert used.beside_s > 0.05
    assert used.client_s >= used.beside_s - TICKS_S


def test_the_ratio_is_orders_over_recoveries() -> None:
    assert a_round().ratio == 0.25


def test_disturbed_rounds_are_not_counted() -> None:
    quiet, busy = a_round(0.05), a_round(0.5)
    assert undisturbed([busy, quiet, busy]) == [quiet]
    assert disturbance([busy, quiet, busy]).startswith("2 of 3 rounds were disturbed")


def test_undisturbed_rounds_need_no_warning() -> None:
    assert disturbance([a_round()]) == ""


def test_rounds_that_were_all_disturbed_are_counted_with_a_warning() -> None:
    busy = a_round(0.5)
    assert undisturbed([busy, busy]) == [busy, busy]
    assert disturbance([busy, busy]).startswith("every round was disturbed")


def test_every_order_of_a_run_is_unique() -> None:
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

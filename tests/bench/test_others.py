"""The benchmarks of single orders and of pairs of rounds: latency, steady rate, durable."""

import io
import re

import pytest
from rich.console import Console
from tests.bench.printed_ratios import is_ratio
from tests.rigs.values import a_key

from foretell.bench.durable import run_bench_durable
from foretell.bench.latency import ECHO, STEPS, run_bench_latency, seconds_by_step
from foretell.bench.rigs.figures import DURABLE, LATENCY
from foretell.bench.rigs.order_rounds import OrderPlan
from foretell.bench.rigs.world import World, make_world
from foretell.bench.steady_rate import run_bench_steady_rate

PLAN = OrderPlan(1, 100, 4, warm_up_orders=20, recoveries=100, syncs=5)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(a_key("bench"))


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_latency_is_printed_next_to_its_floor(console: Console) -> None:
    shown = run_bench_latency(PLAN, console, steps_orders=20, echoes=20)
    (figures,) = re.findall(
        r"p50 (\S+) ms is (\S+) times its floor of (\S+) ms"
        r" \(steps (\S+), fdatasync (\S+), HTTP echo (\S+)\)",
        printed(console),
    )
    p50, times, floor, steps, sync, echo = map(float, figures)
    assert floor == pytest.approx(steps + sync + echo, abs=0.02)
    assert times == pytest.approx(p50 / floor, rel=0.1)
    assert "(median of 1 rounds of 100, 1 connection)" in printed(console)
    (measurement,) = shown.measurements
    assert (measurement.figure, f"{measurement.seen:.2f}") == (LATENCY, f"{times:.2f}")
    assert sum(shown.ms_by_step.values()) == pytest.approx(max(p50, floor), abs=0.02)
    assert shown.ms_by_step[ECHO] == pytest.approx(echo, abs=0.01)


def test_the_steps_of_an_order_take_longer_than_recovering_its_signer(world: World) -> None:
    seconds = seconds_by_step(world, 20)
    assert list(seconds) == list(STEPS)
    assert min(seconds.values()) > 0
    assert sum(seconds.values()) > seconds["recovery of the signer"] > 10e-6


def test_the_cost_of_durability_is_printed_for_pairs_of_rounds(console: Console) -> None:
    (measurement,) = run_bench_durable(PLAN, console)
    rows = re.findall(r"│ \d +│ ([\d,]+) +│", printed(console))
    durable, loose = (float(row.replace(",", "")) for row in rows)
    (ratio,) = re.findall(
        r"^durable-cost: (\d+\.\d\d) of the orders", printed(console), re.MULTILINE
    )
    assert is_ratio(ratio, durable, loose)
    assert (measurement.figure, f"{measurement.seen:.2f}") == (DURABLE, ratio)
    assert measurement.ceiling == f"{loose:,.0f} orders/s without waiting for the disk"
    assert "(median of 1 pairs of rounds of 100, 4 connections)" in printed(console)


def test_slow_orders_are_printed_next_to_ordinary_ones_at_a_steady_rate(console: Console) -> None:
    run_bench_steady_rate(PLAN, 0.5, console)
    ((most, paced, p50, p99, ratio),) = re.findall(
        r"│ 1 +│ ([\d,]+) +│ ([\d,]+) +│ (\S+) +│ (\S+) +│ (\S+) +│", printed(console)
    )
    rates = [float(each.replace(",", "")) for each in (most, paced)]
    assert rates[1] < 0.7 * rates[0]
    assert float(ratio) == pytest.approx(float(p99) / float(p50), rel=0.05)
    assert " at 0.5 of the maximum rate (median of 1 rounds of 100, 32 connections)" in printed(
        console
    )

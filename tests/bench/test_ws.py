import io
import re

import pytest
from rich.console import Console

from foretell.bench.rigs.streams.readers import LAG_OF_ONE_IN
from foretell.bench.ws import StreamPlan, StreamResult, StreamRound, run_bench_ws
from foretell.domain.errors.command import BenchFailed

PLAN = StreamPlan(rounds=1, orders=50, connections=20, subscriptions=10)


def test_deliveries_to_subscribers_are_printed_next_to_writes_to_bare_sockets() -> None:
    file = io.StringIO()
    ((measured,), _) = run_bench_ws(PLAN, Console(file=file, width=250))
    assert measured.deliveries == PLAN.connections * PLAN.subscriptions > LAG_OF_ONE_IN
    printed = file.getvalue()
    ((per_s, ratio, raw_per_s),) = re.findall(
        r"ws: ([\d,]+) deliveries a second, (\S+) for each that .* \(([\d,]+) a second\)", printed
    )
    rates = [float(each.replace(",", "")) for each in (per_s, raw_per_s)]
    assert float(ratio) == pytest.approx(rates[0] / rates[1], abs=0.02)
    assert 0 <= measured.lag_p50_ms <= measured.lag_p99_ms


def test_the_ratio_is_deliveries_over_writes_to_bare_sockets() -> None:
    assert StreamRound(100, 60.0, 80.0, 1.0, 0.5, 1.0, 0.0, 0.0, 0.0).ratio == 0.75


def test_the_figure_is_the_median_of_the_rounds_that_others_did_not_disturb() -> None:
    rounds = [
        StreamRound(100, per_s, 100.0, 1.0, 0.5, 1.0, 0.0, 0.0, others)
        for per_s, others in ((50.0, 0.0), (90.0, 0.0), (70.0, 0.0), (10.0, 1.0))
    ]
    measured = StreamResult(rounds, 0.0).measurement()
    assert (measured.figure, measured.seen) == ("ws", 0.7)
    assert measured.ceiling == "bare sockets: 100 writes/s"


def test_more_connections_than_files_may_be_open_are_refused() -> None:
    with pytest.raises(BenchFailed, match="--connections"):
        run_bench_ws(StreamPlan(1, connections=10**9), Console(file=io.StringIO()))

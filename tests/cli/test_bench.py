"""The options of `foretell bench`; the benchmarks are tested in tests/bench."""

import importlib
import sys

import pytest
from rich.console import Console

from foretell.bench.rigs.fleet import Size
from foretell.bench.rigs.order_rounds import OrderPlan
from foretell.cli.main import run

URL = "postgresql://u@127.0.0.1:1/none"


@pytest.mark.parametrize(
    ("words", "module", "expected"),
    [
        (
            ("order", "--rounds", "2", "--orders", "100", "--conns", "3"),
            "order",
            (OrderPlan(2, 100, 3),),
        ),
        (
            ("order", "--workers", "4", "--shards", "2", "--postgres", URL),
            "scale",
            (OrderPlan(5, 10_000, 32), Size(4, 2), URL),
        ),
        (("latency",), "latency", (OrderPlan(5, 2_000),)),
        (("latency", "--rate", "0.7"), "steady_rate", (OrderPlan(5, 2_000), 0.7)),
        (("durable", "--rounds", "1"), "durable", (OrderPlan(1, 5_000, 32),)),
        (("match", "--commands", "1000"), "match", (5, 1_000)),
        (("journal", "--rounds", "7"), "journal", (7,)),
        (("replay", "--orders", "100", "--events", "200"), "replay", (5, 100, 200)),
        (("failover", "--postgres", URL, "--lease", "1"), "failover", (URL, 1.0, 5)),
    ],
)
def test_a_command_passes_its_options_on(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    module: str,
    expected: tuple[object, ...],
) -> None:
    given: list[object] = []
    where = importlib.import_module(f"foretell.bench.{module}")
    monkeypatch.setattr(where, f"run_bench_{module}", lambda *arguments: given.extend(arguments))
    monkeypatch.setattr(sys, "argv", ["foretell", "bench", *words])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 0
    *options, console = given
    assert tuple(options) == expected
    assert isinstance(console, Console)

"""The options of `foretell bench`; the benchmarks are tested in tests/bench."""

import importlib
import sys
from pathlib import Path

import pytest
from rich.console import Console

from foretell.bench.book import BookPlan
from foretell.bench.index import IndexPlan
from foretell.bench.memory import MemoryPlan
from foretell.bench.rigs.fleet import Size
from foretell.bench.rigs.index.chain import ChainPlan
from foretell.bench.rigs.order_rounds import OrderPlan
from foretell.bench.rigs.soak.fill import FILLING_ORDERS
from foretell.bench.rigs.soak.messages import SoakPlan
from foretell.bench.suite import Sizes
from foretell.bench.ws import StreamPlan
from foretell.cli.main import run
from foretell.domain.exchange.state import PLACEMENTS_KEPT_MAX
from foretell.runtime.interpreter import running_interpreter

SIZES = Sizes()
URL = "postgresql://u@127.0.0.1:1/none"


def called(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], module: str, code: int
) -> list[object]:
    """Run a command whose benchmark returns a code, which becomes its own; return what it was given."""
    given: list[object] = []

    def run_bench(*arguments: object) -> int:
        given.extend(arguments)
        return code

    where = importlib.import_module(f"foretell.bench.{module}")
    monkeypatch.setattr(where, f"run_bench_{module}", run_bench)
    monkeypatch.setattr(sys, "argv", ["foretell", "bench", *words])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == code
    return given


@pytest.mark.parametrize(
    ("words", "module", "expected"),
    [
        (
            ("order", "--rounds", "2", "--orders", "100", "--connections", "3"),
            "order",
            (OrderPlan(2, 100, 3),),
        ),
        (
            ("order", "--workers", "4", "--shards", "2", "--postgres", URL),
            "scale",
            (OrderPlan(5, 10_000, 32), Size(4, 2), URL),
        ),
        (("order", "--conns", "128"), "order", (OrderPlan(5, 10_000, 128),)),
        (("book", "--rate", "7"), "book", (BookPlan(5, 7),)),
        (("memory", "--orders", "300"), "memory", (MemoryPlan(300, 400_000, 300.0),)),
        (("ws", "--conns", "9"), "ws", (StreamPlan(5, 200, 9, 20),)),
        (("latency",), "latency", (OrderPlan(5, 2_000),)),
        (("latency", "--rate", "0.7"), "steady_rate", (OrderPlan(5, 2_000), 0.7)),
        (("durable", "--rounds", "1"), "durable", (OrderPlan(1, 5_000, 32),)),
        (("match", "--commands", "1000"), "match", (5, 1_000)),
        (("journal", "--rounds", "7"), "journal", (7,)),
        (("replay", "--orders", "100", "--events", "200"), "replay", (5, 100, 200)),
        (
            ("index", "--rounds", "3", "--wallets", "200", "--postgres", URL),
            "index",
            (IndexPlan(3, ChainPlan(200, 1_000), postgres=URL),),
        ),
        (("failover", "--postgres", URL, "--lease", "1"), "failover", (URL, 1.0, 5)),
    ],
)
def test_a_command_passes_its_options_on_and_prints_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    module: str,
    expected: tuple[object, ...],
) -> None:
    *options, console = called(monkeypatch, words, module, 0)
    assert tuple(options) == expected
    assert isinstance(console, Console)
    assert " ".join(capsys.readouterr().out.split()) == running_interpreter().words()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("order",), SIZES.order),
        (("latency",), SIZES.latency),
        (("durable",), SIZES.durable),
        (("book",), SIZES.book),
        (("index",), SIZES.indexing),
        (("memory",), SIZES.memory),
        (("match",), (SIZES.rounds, SIZES.match_commands)),
        (("replay",), (SIZES.rounds, SIZES.replay_orders, SIZES.replay_events)),
    ],
)
def test_all_figures_have_the_sizes_of_their_own_commands(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: tuple[object, ...]
) -> None:
    *options, _ = called(monkeypatch, words, words[0], 0)
    assert options in ([expected], list(expected))


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_soak_ends_with_the_code_of_its_faults_and_verdicts(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    words = ("soak", "--minutes", "2", "--orders", "5", "--trades", "1", "--write", "soak.md")
    plan, page, console = called(monkeypatch, words, "soak", code)
    assert (plan, page) == (SoakPlan(2.0, 5.0, 1.0, 10.0, FILLING_ORDERS), Path("soak.md"))
    assert FILLING_ORDERS > PLACEMENTS_KEPT_MAX
    assert isinstance(console, Console)


@pytest.mark.parametrize("code", [0, 3, 75])
def test_all_figures_end_with_the_code_of_their_verdicts(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    words = ("all", "--rounds", "2", "--write", "page.md", "--postgres", URL)
    sizes, page, _ = called(monkeypatch, words, "all_figures", code)
    assert sizes == SIZES.with_rounds(2)._replace(postgres=URL)
    assert page == Path("page.md")

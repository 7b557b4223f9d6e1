"""`bench all`: judgements, the page, exit codes."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from foretell.bench import all_figures
from foretell.bench.all_figures import (
    DISTURBED_CODE,
    MISSED_CODE,
    WatchedResult,
    exit_code,
    judged,
    run_bench_all_figures,
)
from foretell.bench.match import BOOK, WHOLE, Speeds
from foretell.bench.replay import in_new_process
from foretell.bench.rigs.batches import BatchPlan, Measured
from foretell.bench.rigs.figures import (
    TARGETS,
    Judged,
    Judgement,
    Measurement,
    Target,
    judge,
    markdown_of_figures,
)
from foretell.bench.rigs.machine import Usage
from foretell.bench.rigs.page import BEGIN, CHART_NAME, END, chart_of_steps, check_page
from foretell.bench.suite import (
    BENCHMARKS,
    NEEDS_POSTGRES,
    BenchResult,
    Sizes,
    measure,
    measurements_of_journal,
    measurements_of_match,
)
from foretell.bench.ws import StreamPlan
from foretell.domain.errors.command import BenchFailed

AT_LEAST = Target("speed", least=0.4)
AT_MOST = Target("time", most=10.0, unit=" s")
PAGE = f"# Performance\n\nIt is between {BEGIN} and {END}.\n\n{BEGIN}\nold\n{END}\n\nThe end.\n"


def a_measurement(target: Target) -> Measurement:
    """Return a measurement that is exactly at the bar."""
    seen = target.least if target.least is not None else target.most
    assert seen is not None
    return Measurement(target.figure, seen, "a ceiling")


def results(**changes: BenchResult) -> dict[str, BenchResult]:
    """Return a result of each benchmark that meets every bar, with some results changed."""
    target_by_figure = {target.figure: target for target in TARGETS}
    by_name = {
        name: BenchResult([a_measurement(target_by_figure[each]) for each in benchmark.figures])
        for name, benchmark in BENCHMARKS.items()
    }
    return by_name | changes


def watched(found: dict[str, BenchResult], **cores: float) -> dict[str, WatchedResult]:
    return {
        name: WatchedResult(result, 0.0, cores.get(name, 0.02)) for name, result in found.items()
    }


def test_every_bar_has_a_benchmark_that_measures_it() -> None:
    measured = [figure for benchmark in BENCHMARKS.values() for figure in benchmark.figures]
    assert sorted(measured) == sorted(target.figure for target in TARGETS)


@pytest.mark.parametrize(
    ("target", "seen", "verdict"),
    [
        (AT_LEAST, 0.4, Judgement.MET),
        (AT_LEAST, 0.396, Judgement.MET),
        (AT_LEAST, 0.394, Judgement.MISSED),
        (AT_MOST, 10.0, Judgement.MET),
        (AT_MOST, 10.006, Judgement.MISSED),
    ],
)
def test_a_figure_is_judged_as_it_is_shown(target: Target, seen: float, verdict: Judgement) -> None:
    (line,) = judge([Measurement(target.figure, seen, "")], {}, {}, [target])
    assert line.verdict is verdict


def test_a_line_has_the_bar_the_value_and_the_ceiling() -> None:
    lines = judge([Measurement("time", 9.5, "a floor")], {}, {"speed": "why"}, [AT_MOST, AT_LEAST])
    assert lines == [
        Judged("time", "≤ 10 s", "9.50 s", "a floor", Judgement.MET),
        Judged("speed", "≥ 0.4", "-", "why", Judgement.NOT_MEASURED),
    ]


def test_a_disturbed_figure_is_shown_and_not_judged() -> None:
    (line,) = judge([Measurement("speed", 0.9, "a ceiling")], {"speed": "noise"}, {}, [AT_LEAST])
    assert line == Judged("speed", "≥ 0.4", "0.90", "a ceiling; noise", Judgement.DISTURBED)


def test_all_bars_met_end_with_0() -> None:
    run = watched(results())
    lines = judged(run)
    assert {line.verdict for line in lines} == {Judgement.MET}
    assert exit_code(run, lines) == 0


@pytest.mark.parametrize(
    ("before_cores", "during_cores"), [(0.11, 0.0), (0.0, 0.11)], ids=["before", "during"]
)
def test_other_programs_before_or_during_a_benchmark_disturb_its_figures_alone(
    before_cores: float, during_cores: float
) -> None:
    run = watched(results())
    run["latency"] = WatchedResult(run["latency"].result, before_cores, during_cores)
    lines = judged(run)
    assert [each.figure for each in lines if each.verdict is Judgement.DISTURBED] == [
        "order-latency"
    ]
    assert exit_code(run, lines) == DISTURBED_CODE


def test_a_missed_bar_ends_with_a_code_of_its_own() -> None:
    run = watched(results(book=BenchResult([Measurement("book", 0.5, "a ceiling")])))
    assert exit_code(run, judged(run)) == MISSED_CODE


def test_a_failed_benchmark_is_a_line_with_its_reason() -> None:
    run = watched(results(book=BenchResult(failure="HTTP 503")))
    (line,) = [each for each in judged(run) if each.figure == "book"]
    assert (line.verdict, line.ceiling) == (Judgement.NOT_MEASURED, "HTTP 503")
    assert exit_code(run, judged(run)) == MISSED_CODE


def test_failover_without_a_database_is_not_measured_and_no_failure() -> None:
    run = watched(results(failover=BenchResult()))
    (line,) = [each for each in judged(run) if each.figure == "failover"]
    assert (line.verdict, line.ceiling) == (Judgement.NOT_MEASURED, NEEDS_POSTGRES)
    assert exit_code(run, judged(run)) == 0


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs use a fortieth of a core."""
    seconds = iter(range(10_000))

    def use() -> Usage:
        at_s = next(seconds)
        return Usage(at_s=at_s, all_s=at_s * 0.025, own_s=0.0)

    monkeypatch.setattr(all_figures, "usage_with", use)


def runner(by_name: dict[str, BenchResult]) -> Callable[..., Any]:
    return lambda *given: by_name[given[1]]


@pytest.mark.usefixtures("quiet_machine")
def test_a_run_writes_its_table_and_chart_between_the_markers_of_a_page(tmp_path: Path) -> None:
    page, file = tmp_path / "page.md", io.StringIO()
    page.write_text(PAGE)
    latency = BenchResult(results()["latency"].measurements, [("hash", 0.006), ("the rest", 0.018)])
    run = runner(results(latency=latency))
    console = Console(file=file, width=200)
    assert run_bench_all_figures(Sizes(), page, console, run, quiet_s=0.0) == 0
    text = page.read_text()
    assert text.startswith(f"{PAGE.partition('old')[0]}\n")
    assert text.endswith(f"{END}\n\nThe end.\n")
    assert "old" not in text
    assert "| ready | ≤ 10 s | 10.00 s | a ceiling | met |\n" in text
    assert "other programs used 0.03" in " ".join(text.split())
    assert f"]({CHART_NAME})" in text
    assert "6 µs, 25%" in (tmp_path / CHART_NAME).read_text()
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120
    printed = file.getvalue()
    assert printed.count("│ met") == len(TARGETS)
    run_bench_all_figures(Sizes(), page, console, run, quiet_s=0.0)
    assert page.read_text() == text


def test_a_page_without_markers_is_refused_before_anything_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{END}\n{BEGIN}\n")
    with pytest.raises(BenchFailed, match="has no place for the figures"):
        run_bench_all_figures(Sizes(), page, Console(file=io.StringIO()), runner({}))


def test_the_page_of_performance_has_a_place_for_the_figures() -> None:
    check_page(Path(__file__).parents[2] / "docs" / "reference" / "performance.md")


def test_a_missed_bar_stands_out_in_markdown() -> None:
    line = Judged("speed", "≥ 0.4", "0.10", "a ceiling", Judgement.MISSED)
    assert markdown_of_figures([line]).splitlines()[2:] == [
        "| speed | ≥ 0.4 | 0.10 | a ceiling | **missed** |"
    ]


def test_a_chart_has_a_bar_for_each_step_as_long_as_its_time() -> None:
    root = ET.fromstring(chart_of_steps("A & B", {"one": 10.0, "two <2>": 30.0}))
    space = "{http://www.w3.org/2000/svg}"
    first, second = (
        float(bar.attrib["width"]) for bar in root.findall(f"{space}rect") if "x" in bar.attrib
    )
    assert second == pytest.approx(3 * first, abs=0.1)
    texts = [text.text for text in root.findall(f"{space}text")]
    assert texts == ["A & B", "one", "10 µs, 25%", "two <2>", "30 µs, 75%"]


def speeds(depth: int, others_cores: float = 0.0) -> Speeds:
    per_s = {WHOLE: 50_000.0 if depth < 100_000 else 40_000.0, BOOK: 300_000.0, "peer": 100_000.0}
    return Speeds(depth, per_s, 1, others_cores)


def test_matching_is_judged_against_the_best_peer_and_the_engine_by_depth() -> None:
    disturbed = speeds(1_000, others_cores=0.5)._replace(per_s={WHOLE: 1.0, BOOK: 1.0, "peer": 1.0})
    measured = [*map(speeds, (10, 1_000, 100_000)), disturbed]
    assert [each[:2] for each in measurements_of_match(measured)] == [
        ("match, 10 resting orders", 3.0),
        ("match, 1,000 resting orders", 3.0),
        ("match, 100,000 resting orders", 3.0),
        ("engine, 1,000 resting orders", 0.5),
        ("match-depth", 0.8),
    ]


def test_a_journal_is_judged_by_the_median_of_each_batch_size() -> None:
    measured = [Measured(batch, ms, 1.0) for batch in (1, 16) for ms in (2.0, 1.0, 3.0)]
    assert measurements_of_journal(measured) == [
        Measurement("journal, 1 record", 2.0, "fdatasync of the same bytes: 1.00 ms"),
        Measurement("journal, 16 records", 2.0, "fdatasync of the same bytes: 1.00 ms"),
    ]


TINY = Sizes(
    rounds=1,
    match_commands=1_000,
    depths=(5, 10, 20),
    batches=BatchPlan((1, 16), 2),
    replay_orders=200,
    replay_events=300,
    streams=StreamPlan(1, 50, 20, 10),
    postgres="postgresql://nobody@127.0.0.1:1/none",
)


def figures(found: Sequence[Measurement]) -> list[str]:
    return [each.figure for each in found]


def test_a_benchmark_in_a_new_process_returns_its_measurements() -> None:
    found: BenchResult = in_new_process(measure, "journal", TINY)
    assert figures(found.measurements) == ["journal, 1 record", "journal, 16 records"]


def test_deliveries_are_measured_beside_bare_sockets() -> None:
    found = measure("ws", TINY)
    assert figures(found.measurements) == ["ws"]
    assert found.measurements[0].seen > 0


def test_a_replay_measures_the_start_and_its_speed() -> None:
    assert figures(measure("replay", TINY).measurements) == ["ready", "replay"]


def test_matching_measures_each_depth() -> None:
    found = measure("match", TINY)
    assert figures(found.measurements)[:3] == [
        "match, 5 resting orders",
        "match, 10 resting orders",
        "match, 20 resting orders",
    ]
    assert all(each.seen > 0 for each in found.measurements)


def test_a_benchmark_that_fails_returns_its_reason() -> None:
    found = measure("failover", TINY)
    assert found.measurements == ()
    assert found.failure

"""`foretell bench all`: every figure with a bar, one benchmark after the other, in one table.

Each benchmark runs in a new process. The use of the machine by other programs is measured before and during it; a
disturbed figure is shown, but not judged. The table and a chart of the steps of an order can be written to a page.
"""

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from foretell.app.clock_and_ids import now_ms
from foretell.bench.replay import Run, in_new_process
from foretell.bench.rigs.figures import (
    Judged,
    Judgement,
    judge,
    markdown_of_figures,
    table_of_figures,
)
from foretell.bench.rigs.machine import DISTURBED_CORES, machine_words, usage_with
from foretell.bench.rigs.page import check_page, write_page
from foretell.bench.suite import BENCHMARKS, NEEDS_POSTGRES, BenchResult, Sizes, measure
from foretell.runtime.interpreter import running_interpreter

QUIET_S: Final = 2.0
"""How long other programs are watched before a benchmark."""
MISSED_CODE: Final = 3
"""Exit code of a run with a missed bar or a failed benchmark."""
DISTURBED_CODE: Final = os.EX_TEMPFAIL
"""Exit code of a run with a disturbed figure: try again while nothing else runs."""


class WatchedResult(NamedTuple):
    """The result of a benchmark, and the cores of other programs before and during it."""

    result: BenchResult
    before_cores: float
    during_cores: float

    @property
    def most_cores(self) -> float:
        """The larger of the two."""
        return max(self.before_cores, self.during_cores)

    @property
    def disturbance(self) -> str:
        """The cores of other programs before and during, in words; nothing for a quiet machine."""
        if self.most_cores <= DISTURBED_CORES:
            return ""
        return f"others: {self.before_cores:.2f}, {self.during_cores:.2f} cores"


def run_bench_all_figures(
    sizes: Sizes,
    page: Path | None,
    console: Console,
    run: Run = in_new_process,
    quiet_s: float = QUIET_S,
) -> int:
    """Run every benchmark, print the figures, write them to a page if one is named; return the exit code."""
    if page is not None:
        check_page(page)
    watched = {}
    for name, benchmark in BENCHMARKS.items():
        quiet = usage_with()
        time.sleep(quiet_s)
        before = usage_with()
        result: BenchResult = run(measure, name, sizes)
        during_cores = before.others_cores(usage_with()) if benchmark.is_watched else 0.0
        watched[name] = WatchedResult(result, quiet.others_cores(before), during_cores)
    lines = judged(watched)
    head = _head(sizes, watched)
    console.rule("all figures")
    console.print(head)
    console.print(table_of_figures(lines))
    if page is not None:
        write_page(page, head, markdown_of_figures(lines), _us_by_step(watched))
    return exit_code(watched, lines)


def judged(watched: Mapping[str, WatchedResult]) -> list[Judged]:
    """Return the line of each figure."""
    measurements = [each for one in watched.values() for each in one.result.measurements]
    disturbed, missing = {}, {}
    for name, one in watched.items():
        for figure in BENCHMARKS[name].figures:
            missing[figure] = one.result.failure or NEEDS_POSTGRES
            if one.disturbance:
                disturbed[figure] = one.disturbance
    return judge(measurements, disturbed, missing)


def exit_code(watched: Mapping[str, WatchedResult], lines: Sequence[Judged]) -> int:
    """Return the code of the command: a disturbed figure weighs more than a missed bar."""
    verdicts = {line.verdict for line in lines}
    if Judgement.DISTURBED in verdicts:
        return DISTURBED_CODE
    has_failed = any(one.result.failure for one in watched.values())
    return MISSED_CODE if has_failed or Judgement.MISSED in verdicts else 0


def _head(sizes: Sizes, watched: Mapping[str, WatchedResult]) -> str:
    day = datetime.fromtimestamp(now_ms() / 1000, UTC)
    most_cores = max(one.most_cores for one in watched.values())
    return (
        f"{day:%Y-%m-%d}, {machine_words()}, {running_interpreter().words()}. Medians of"
        f" {sizes.rounds} rounds; other programs used {most_cores:.2f} cores at most."
    )


def _us_by_step(watched: Mapping[str, WatchedResult]) -> Mapping[str, float]:
    """Return the steps of an order in microseconds; none if their benchmark failed."""
    return {step: ms * 1e3 for one in watched.values() for step, ms in one.result.step_ms}

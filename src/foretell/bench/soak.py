"""`foretell bench soak`: a whole sandbox under a mixed load for a long time (soak).

The sandbox is `foretell up`, as a user starts it, and the load is a process of its own. It is for what shorter
benchmarks do not show: memory and files that grow, queues that fill, an order that is lost.
"""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.machine import DISTURBED_CORES, machine_words, usage_with
from foretell.bench.rigs.soak.chart import chart_of_soak
from foretell.bench.rigs.soak.messages import SoakOutcome, SoakPlan
from foretell.bench.rigs.soak.samples import sample
from foretell.bench.rigs.soak.sandbox_process import ended_by_sigterm, running_load, running_sandbox
from foretell.bench.rigs.soak.trends import (
    SLOPES_SHOWN,
    JudgedTrend,
    TrendVerdict,
    growth_words,
    judge_all,
)
from foretell.bench.rigs.soak.verification import with_verification
from foretell.domain.errors.command import BenchFailed
from foretell.runtime.interpreter import running_interpreter

WINDOW_S: Final = 10.0
WINDOWS_MIN: Final = 6
"""A shorter run has shorter windows, so that it has this many."""
FAULT_CODE: Final = 1
"""Exit code of a run with a fault: a lost order, an unsettled trade, a status of 500 or above."""
MISSED_CODE: Final = 3
"""Exit code of a run without a fault, with a missed bar."""
COLUMNS: Final = {
    "min": "",
    "server": "memory server MB",
    "tables": "memory tables MB",
    "recovery": "memory recovery MB",
    "settlement": "memory settlement MB",
    "reads": "memory reads MB",
    "sqlite": "memory SQLite of server MB",
    "chain": "memory chain MB",
    "files": "files open",
    "db MB": "files database MB",
    "journal": "files journal MB",
    "state": "files chain MB",
    "order p50": "orders p50 ms",
    "p99 ms": "orders p99 ms",
    "read p50": "reads p50 ms",
    "p99 ms ": "reads p99 ms",
    "tables ms": "lag tables ms",
    "index": "lag index blocks",
    "settle s": "lag settlement s",
    "backlog": "backlog",
    "faults": "faults",
}
"""The columns of the lines that are printed, and their values; memory in MB."""


class SoakResult(NamedTuple):
    """The samples of a soak, what became of its load, the verdicts, and the cores of other programs."""

    samples: Sequence[Mapping[str, float]]
    outcome: SoakOutcome
    judged: Sequence[JudgedTrend]
    others_cores: float

    @property
    def exit_code(self) -> int:
        """The code of the command: a fault weighs more than a missed bar."""
        if not self.outcome.is_clean:
            return FAULT_CODE
        return MISSED_CODE if TrendVerdict.MISSED in {each.verdict for each in self.judged} else 0


def run_bench_soak(plan: SoakPlan, page: Path | None, console: Console) -> int:
    """Load a sandbox, print a line for each window and the verdicts; return the exit code."""
    if page is not None and not page.parent.is_dir():
        raise BenchFailed(f"{page.parent} is no folder: name a file in one")
    with ended_by_sigterm(), tempfile.TemporaryDirectory(prefix="foretell-soak-") as name:
        result = _soak(plan, Path(name), console)
    head = _head(plan, result)
    console.print(head, highlight=False)
    console.print(_table_of(result.judged))
    for each in SLOPES_SHOWN:
        console.print(growth_words(result.samples, each), highlight=False)
    console.print(outcome_words(result.outcome), highlight=False)
    if page is not None:
        chart = page.with_suffix(".svg")
        chart.write_text(chart_of_soak(result.samples))
        page.write_text(page_of(head, result, chart.name))
        console.print(f"written: {page} and {chart}", highlight=False, soft_wrap=True)
    return result.exit_code


def _soak(plan: SoakPlan, folder: Path, console: Console) -> SoakResult:
    window_s = min(WINDOW_S, plan.seconds / WINDOWS_MIN)
    samples, outcome = [], None
    with running_sandbox(folder) as pid, running_load(folder, plan, window_s) as load:
        before = usage_with(pid, load.pid)
        console.print("  ".join(COLUMNS), highlight=False, soft_wrap=True)
        for line in load.lines():
            if isinstance(line, SoakOutcome):
                outcome = line
                break
            samples.append(sample(pid, folder / "data", line, plan.filling_orders))
            console.print(_row_of(samples[-1]), highlight=False, soft_wrap=True)
            for each in line.examples:
                console.print(f"fault: {each}", markup=False, highlight=False, soft_wrap=True)
            console.file.flush()
        others_cores = before.others_cores(usage_with(pid, load.pid))
        assert outcome is not None, "the last line of a load is its outcome"
        outcome = with_verification(outcome, folder / "data")
    judged = judge_all(samples, is_disturbed=others_cores > DISTURBED_CORES)
    return SoakResult(samples, outcome, judged, others_cores)


def _row_of(values: Mapping[str, float]) -> str:
    """Return a sample as a line of the printed columns."""
    cells = [f"{values['at_s'] / 60:.1f}".rjust(len("min"))]
    for title, name in list(COLUMNS.items())[1:]:
        value = values.get(name)
        cells.append(("-" if value is None else f"{value:,.5g}").rjust(len(title)))
    return "  ".join(cells)


def outcome_words(outcome: SoakOutcome) -> str:
    """Return what became of the load, in words."""
    settled = "none settled"
    if outcome.settled_p50_s is not None:
        settled = f"settled in {outcome.settled_p50_s:.1f} s, {outcome.settled_max_s:.1f} s at most"
    drained = "not 0 again"
    if outcome.drained_s is not None:
        drained = f"0 after {outcome.drained_s:.1f} s"
    words = (
        f"soak: {outcome.orders:,} orders accepted, {outcome.cancels:,} canceled, {outcome.trades:,} trades"
        f" ({settled}), backlog {outcome.backlog_most} at most and {outcome.backlog_end} when the load ended"
        f" ({drained}), {outcome.reads:,} reads, {outcome.stream_messages:,} messages on streams;"
        f" {outcome.lost} orders lost, {outcome.unsettled} trades unsettled, {outcome.faults} faults,"
        f" {outcome.rows_compared:,} rows of tables compared with the chain"
    )
    return "\n".join([words, *(f"fault: {each}" for each in outcome.examples)])


def page_of(head: str, result: SoakResult, chart: str) -> str:
    """Return the page of a soak in Markdown."""
    rows = ["| value | bar | seen | verdict | reason of the bar |", "|---|---|---|---|---|"]
    rows += [f"| {' | '.join(each)} |" for each in result.judged]
    grown = [f"- {growth_words(result.samples, name)}" for name in SLOPES_SHOWN]
    without_bar = ["", "Without a bar, because they grow with the load:", "", *grown, ""]
    words, image = outcome_words(result.outcome), f"![Memory, files, latencies and lags]({chart})"
    return "\n".join(["# Soak", "", head, "", *rows, *without_bar, words, "", image, ""])


def _head(plan: SoakPlan, result: SoakResult) -> str:
    day = datetime.fromtimestamp(now_ms() / 1000, UTC)
    return (
        f"{day:%Y-%m-%d}, {machine_words()}, {running_interpreter().words()}. {plan.filling_orders:,} orders to fill"
        f" what is kept up to a number, and then {plan.minutes:g} minutes of"
        f" {plan.orders_per_s:g} orders (and as many cancels), {plan.trades_per_s:g} trades and"
        f" {plan.reads_per_s:g} reads a second; other programs used {result.others_cores:.2f} cores."
    )


def _table_of(judged: Sequence[JudgedTrend]) -> Table:
    table = Table("value", "bar", "seen", "verdict")
    for each in judged:
        table.add_row(*each[:-1])
    return table

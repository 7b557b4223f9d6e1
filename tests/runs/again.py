"""`make again`: runs of the tests in a row beside busy processes, until one fails, to find a test that needs luck.

No test is run a second time within a run. Prints a row for the tests that were run, and writes it into a page:
`make again RUNS=20 WRITE=PAGE.md`. `ONLY=` names folders and modules, such as those that wait for time or processes.
"""

import argparse
import datetime as dt
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.fault_parts import read_report

from foretell.bench.rigs.machine import machine_words
from foretell.bench.rigs.page import check_page, markdown_table, write_block

ROOT: Final = Path(__file__).parents[2]
BLOCK: Final = "make again"
WHOLE: Final = "the whole suite"
HEADS: Final = (
    "tests",
    "runs in a row",
    "tests a run",
    "busy processes beside",
    "failed",
    "day and machine",
)
HEAD: Final = "How often the tests passed in a row, on this machine, while other processes were busy all the time."
BUSY: Final = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
"""What a busy process runs: until its parent has ended, however that happened."""


class Run(NamedTuple):
    """One run: how many tests passed, and the names of those that did not."""

    passed: int
    failed: tuple[str, ...]


@contextmanager
def busy(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep so many processes busy."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_once(paths: Sequence[str], workers: int, report: Path) -> Run:
    """Run the tests below paths, or all; a run that ends without a report has failed as a whole."""
    report.unlink(missing_ok=True)
    options = ["-n", str(workers), "--dist", "loadgroup", "-q", f"--junitxml={report}"]
    if paths:  # as arguments, tests of a module would be distributed over all workers, unlike in a whole run
        options += ["-o", f"testpaths={shlex.join(paths)}"]
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=ROOT, check=False
    ).returncode
    run = read_run(report) if report.exists() else Run(0, ())
    return run if not code or run.failed else Run(run.passed, (f"pytest ended with {code}",))


def read_run(report: Path) -> Run:
    """Return the run of a report in JUnit's format; tests are named without their parameters."""
    ended = read_report(report)
    failed = {f"{each.module}::{each.name}" for each in ended if not each.has_passed}
    return Run(sum(each.has_passed for each in ended), tuple(sorted(failed)))


def row_of(tests: str, runs: Sequence[Run], processes: int) -> tuple[str, ...]:
    """Return the cells of a row: the runs that passed before the first that did not, and what failed in that."""
    passed = [run for run in runs if not run.failed]
    failed = [name for run in runs for name in run.failed]
    fewest = min((run.passed for run in passed), default=0)
    occasion = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {machine_words()}"
    found = f"**{', '.join(failed)}**" if failed else "0"
    return (tests, str(len(passed)), f"{fewest:,}", str(processes), found, occasion)


def known_rows(page: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of a page's block by the words of their tests."""
    block = page.partition(f"<!-- {BLOCK}: begin -->")[2].partition(f"<!-- {BLOCK}: end -->")[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in re.findall(r"^\|.*\|$", block, re.MULTILINE)[2:]
    ]
    return {row[0]: row for row in rows}


def write_row(page: Path, row: tuple[str, ...]) -> None:
    """Write a row into a page's block, in place of an earlier one of the same tests."""
    rows = known_rows(page.read_text()) | {row[0]: row}
    write_block(page, BLOCK, HEAD, [markdown_table(HEADS, rows.values()), ""])


def main(paths: Sequence[str], count: int, processes: int, workers: int, page: Path | None) -> int:
    """Run tests so often, or until a run fails; print the row, and return 1 if a run failed.

    The row is written after each run, so that it has those before an end of the program.
    """
    if page is not None:
        check_page(page, BLOCK)
    tests = ", ".join(f"`{path}`" for path in paths) or WHOLE
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder, busy(processes):
        while len(runs) < count and not any(run.failed for run in runs):
            runs.append(run_once(paths, workers, Path(folder) / "report.xml"))
            last = runs[-1]
            words = (
                f"failed: {', '.join(last.failed)}" if last.failed else f"{last.passed:,} passed"
            )
            sys.stdout.write(f"Run {len(runs)} of {count}: {words}\n")
            sys.stdout.flush()
            if page is not None:
                write_row(page, row_of(tests, runs, processes))
    sys.stdout.write(f"{markdown_table(HEADS, [row_of(tests, runs, processes)])}\n")
    return 1 if any(run.failed for run in runs) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    sys.exit(main(given.only, given.runs, given.busy, given.workers, given.write))

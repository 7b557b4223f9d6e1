"""`make again`: runs of the tests in a row beside busy processes, until one fails, to find a test that needs luck.

No test is run a second time within a run. Prints a row for each folder of the tests that were run, and writes the rows
into a page: `make again RUNS=20 WRITE=PAGE.md`. A row counts on from the one that the page has, until a test of its
folder fails. `ONLY=` names folders and modules, such as those that wait for time or processes.
"""

import argparse
import datetime as dt
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.fault_parts import Ended, read_report

from foretell.bench.rigs.machine import machine_words
from foretell.bench.rigs.page import check_page, markdown_table, write_block

ROOT: Final = Path(__file__).parents[2]
BLOCK: Final = "make again"
OTHERS: Final = "tests/test_*.py"
"""The part of the modules that are in no folder of their own."""

HEADS: Final = (
    "tests",
    "runs in a row",
    "tests a run",
    "busy processes beside",
    "failed",
    "since",
    "last day and machine",
)
RUNS, BESIDE, FAILED, SINCE = (
    HEADS.index(head) for head in ("runs in a row", "busy processes beside", "failed", "since")
)
HEAD: Final = (
    "How often the tests passed in a row, on such machines, while other processes were busy all the time:"
    " all runs of `make again` since that day, or since the last one in which a test of the row failed."
)
NO_FAILURE: Final = "0"
BUSY: Final = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
"""What a busy process runs: until its parent has ended, however that happened."""


class Plan(NamedTuple):
    """Which tests are run, below paths or all of a project's; how often, beside how many busy processes."""

    paths: Sequence[str]
    runs: int
    processes: int
    workers: int
    root: Path = ROOT

    @property
    def parts(self) -> list[str]:
        """What has a row of its own: each path, or each folder of tests."""
        return list(self.paths) or [*folders(self.root), OTHERS]


class Outcome(NamedTuple):
    """What a run says of a part of the tests: how many passed, and the names of those that did not."""

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


def folders(root: Path = ROOT) -> list[str]:
    """Return the folders of a project that have tests."""
    found = {path.relative_to(root).parts[1] for path in (root / "tests").glob("*/**/test_*.py")}
    return [f"tests/{name}" for name in sorted(found)]


def run_once(plan: Plan, report: Path) -> dict[str, Outcome]:
    """Run the tests, and return what became of each part.

    All parts of a run that ends without a report have failed, and so has a part without a test. A run that was
    interrupted is none: raises KeyboardInterrupt, unless a test of it had failed.
    """
    report.unlink(missing_ok=True)
    options = ["-n", str(plan.workers), "--dist", "loadgroup", "-q", f"--junitxml={report}"]
    if plan.paths:  # as arguments, tests of a module would be distributed over all workers, unlike in a whole run
        options += ["-o", f"testpaths={shlex.join(plan.paths)}"]
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=plan.root, check=False
    ).returncode
    ended = read_report(report) if report.exists() else ()
    if ended and code == pytest.ExitCode.INTERRUPTED and all(each.has_passed for each in ended):
        raise KeyboardInterrupt
    outcomes = outcomes_of(ended, plan.parts)
    if code and not any(each.failed for each in outcomes.values()):
        return {part: Outcome(0, (f"pytest ended with {code}",)) for part in plan.parts}
    return outcomes


def outcomes_of(ended: Iterable[Ended], parts: Sequence[str]) -> dict[str, Outcome]:
    """Return what became of each part; tests are named without their parameters."""
    passed, failed = Counter[str](), defaultdict[str, set[str]](set)
    for each in ended:
        part = part_of(each.module, parts)
        if each.has_passed:
            passed[part] += 1
        else:
            failed[part].add(f"{each.module}::{each.name}")
    for part in parts:
        if not passed[part] and not failed[part]:
            failed[part].add("no test was run")
    return {part: Outcome(passed[part], tuple(sorted(failed[part]))) for part in parts}


def part_of(module: str, parts: Sequence[str]) -> str:
    """Return the part to which a module belongs: the nearest folder, or the module."""
    nearest = sorted(parts, key=len, reverse=True)
    return next((part for part in nearest if f"{module}/".startswith(f"{part}/")), OTHERS)


def row_of(
    part: str, outcomes: Sequence[Outcome], processes: int, known: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """Return the cells of a part's row: the runs that passed before the first that did not, and what failed in that.

    Runs of a known row count if all of them passed, with the fewest processes beside any of them.
    """
    passed = [each for each in outcomes if not each.failed]
    failed = [name for each in outcomes for name in each.failed]
    before, day = 0, f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    since = day
    if known is not None and known[FAILED] == NO_FAILURE:
        before, since = int(known[RUNS]), known[SINCE]
        processes = min(processes, int(known[BESIDE]))
    fewest = min((each.passed for each in passed), default=0)
    found = f"**{', '.join(failed)}**" if failed else NO_FAILURE
    occasion = f"{day}, {machine_words()}"
    return (
        words(part),
        str(before + len(passed)),
        f"{fewest:,}",
        str(processes),
        found,
        since,
        occasion,
    )


def words(part: str) -> str:
    """Return the first cell of a part's row."""
    return f"`{part}`"


def known_rows(page: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of a page's block by the words of their tests."""
    block = page.partition(f"<!-- {BLOCK}: begin -->")[2].partition(f"<!-- {BLOCK}: end -->")[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in re.findall(r"^\|.*\|$", block, re.MULTILINE)[2:]
    ]
    return {row[0]: row for row in rows}


def write_rows(page: Path, rows: Sequence[tuple[str, ...]]) -> None:
    """Write rows into a page's block, in place of earlier ones of the same tests."""
    all_rows = known_rows(page.read_text()) | {row[0]: row for row in rows}
    ordered = [all_rows[name] for name in sorted(all_rows)]
    write_block(page, BLOCK, HEAD, [markdown_table(HEADS, ordered), ""])


def main(plan: Plan, page: Path | None) -> int:
    """Run tests so often, or until a run fails; print the rows, and return 1 if a run failed.

    The rows are written after each run, so that they have those before an end of the program.
    """
    if page is not None:
        check_page(page, BLOCK)
    known = {} if page is None else known_rows(page.read_text())
    outcomes: dict[str, list[Outcome]] = {part: [] for part in plan.parts}
    rows: list[tuple[str, ...]] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, busy(plan.processes):
        for number in range(1, plan.runs + 1):
            last = run_once(plan, Path(folder) / "report.xml")
            for part, outcome in last.items():
                outcomes[part].append(outcome)
            rows = [
                row_of(part, found, plan.processes, known.get(words(part)))
                for part, found in outcomes.items()
            ]
            if page is not None:
                write_rows(page, rows)
            failed = [name for each in last.values() for name in each.failed]
            passed = sum(each.passed for each in last.values())
            what = f"failed: {', '.join(failed)}" if failed else f"{passed:,} passed"
            sys.stdout.write(f"Run {number} of {plan.runs}: {what}\n")
            sys.stdout.flush()
            if failed:
                break
    sys.stdout.write(f"{markdown_table(HEADS, rows)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--only", type=lambda text: [each.rstrip("/") for each in text.split(",")], default=[]
    )
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    sys.exit(main(Plan(given.only, given.runs, given.busy, given.workers), given.write))

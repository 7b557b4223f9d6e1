"""Tables of claims, and the tests that prove them: `make spec` and `make cases`.

A test claims a row of a table with a marker. The marked tests run, and each row is printed with its tests and their
outcome. The run fails when a claimed row has a test that does not pass, or is in no table, and when a row has
no test that must have one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from rich.console import Console
from rich.table import Table

WORKERS: Final = 2
MARKERS: Final = ("spec", "case")
"""The markers whose arguments are rows of a table."""

_ENDS: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})


def claims_of(item: pytest.Item) -> Iterator[tuple[str, object]]:
    """Return the rows that a test claims, each with its marker, for the test's report."""
    for marker in MARKERS:
        for mark in item.iter_markers(marker):
            yield from ((marker, row) for row in mark.args)


@dataclass
class Outcomes:
    """The outcome of every test that claims a row of one table, collected as a plugin of pytest."""

    marker: str
    tests_by_row: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for marker, row in report.user_properties:
            if marker == self.marker:
                tests = self.tests_by_row[str(row)]
                known = tests.get(report.nodeid, "passed")
                if report.when == "call" or report.outcome != "passed":
                    tests[report.nodeid] = report.outcome if known == "passed" else known

    def holds(self, row: str) -> bool:
        """Return whether a row has tests, and all of them passed."""
        return set(self.tests_by_row.get(row, {}).values()) == {"passed"}

    def names(self, row: str) -> list[str]:
        """Return the modules and names of a row's tests, without parameters."""
        return sorted({test.split("[")[0] for test in self.tests_by_row.get(row, {})})


def run(marker: str) -> tuple[Outcomes, int]:
    """Run the tests with this marker; return their outcomes and the exit code of pytest."""
    outcomes = Outcomes(marker)
    options = ["-q", "-m", marker, "-n", str(WORKERS), "--dist", "loadgroup"]
    return outcomes, pytest.main(options, [outcomes])


def report(
    outcomes: Outcomes,
    statements: Mapping[str, str],
    titles: Sequence[str],
    ruled_out: Collection[str] = (),
) -> bool:
    """Print the rows that are claimed, and list those that are ruled out and the others; return whether every claim holds."""
    claimed = [row for row in statements if outcomes.tests_by_row.get(row)]
    table = Table(*titles, "tests", "outcome")
    for row in claimed:
        outcome = "holds" if outcomes.holds(row) else "BROKEN"
        table.add_row(row, statements[row], "\n".join(outcomes.names(row)), outcome)
    broken = [row for row in claimed if not outcomes.holds(row)]
    unknown = sorted(set(outcomes.tests_by_row) - set(statements))
    without = [row for row in statements if row in ruled_out and row not in claimed]
    open_rows = [row for row in statements if row not in claimed and row not in ruled_out]
    console = Console()
    console.print(table)
    if without:
        console.print(f"Ruled out: {', '.join(without)}")
    console.print(f"{len(claimed) - len(broken)} of {len(statements)} {titles[0]}s are proven.")
    console.print(f"Open: {', '.join(open_rows) or 'none'}")
    if broken or unknown:
        console.print(f"[red]Broken: {broken}; in no table: {unknown}")
    return not broken and not unknown


def main(
    marker: str,
    statements: Mapping[str, str],
    titles: Sequence[str],
    *,
    ruled_out: Collection[str] = (),
) -> int:
    """Run a table's tests, print it, and return 0 when every claim holds, and each row has a test or is ruled out."""
    outcomes, code = run(marker)
    holds = report(outcomes, statements, titles, ruled_out)
    is_whole = statements.keys() - set(ruled_out) <= outcomes.tests_by_row.keys()
    return 0 if holds and is_whole and code in _ENDS else 1

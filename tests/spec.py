"""`make spec`: the statements of docs/reference/checklist.md and the tests that prove them.

Runs the marked tests and prints row, tests and outcome. Fails when a row has no test or a failing one.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

CHECKLIST = Path(__file__).parents[1] / "docs" / "reference" / "checklist.md"
WORKERS = 2


class Outcomes:
    """The outcome of every test that claims a row."""

    def __init__(self) -> None:
        self.tests_by_row: dict[int, dict[str, str]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, row in report.user_properties:
            if name == "spec" and isinstance(row, int):
                known = self.tests_by_row[row].get(report.nodeid, "passed")
                if report.when == "call" or report.outcome != "passed":
                    worst = report.outcome if known == "passed" else known
                    self.tests_by_row[row][report.nodeid] = worst


def statements() -> dict[int, str]:
    """Return the checklist's statements by row."""
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", CHECKLIST.read_text(), flags=re.MULTILINE)
    return {int(row): statement for row, statement in rows}


def main() -> int:
    """Run the tests, print the table, and return 0 when every claim holds."""
    outcomes = Outcomes()
    code = pytest.main(["-q", "-m", "spec", "-n", str(WORKERS), "--dist", "loadgroup"], [outcomes])
    table = Table("row", "statement", "tests", "outcome")
    broken, open_rows = [], []
    for row, statement in statements().items():
        tests = outcomes.tests_by_row.get(row, {})
        if not tests:
            open_rows.append(row)
            continue
        holds = set(tests.values()) == {"passed"}
        if not holds:
            broken.append(row)
        names = "\n".join(sorted({test.split("[")[0].split("::", 1)[1] for test in tests}))
        table.add_row(str(row), statement, names, "holds" if holds else "BROKEN")
    unknown = sorted(set(outcomes.tests_by_row) - set(statements()))
    console = Console()
    console.print(table)
    console.print(f"{len(statements()) - len(open_rows)} of {len(statements())} rows are proven.")
    console.print(f"Open: {', '.join(map(str, open_rows)) or 'none'}")
    if broken or unknown:
        console.print(f"[red]Broken: {broken}; not in the checklist: {unknown}")
    return 1 if broken or unknown or open_rows or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main())

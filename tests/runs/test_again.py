"""Runs of the tests in a row, and the table that they write."""

import re
import subprocess
import time
from pathlib import Path

import pytest
from tests.fault_parts import Ended
from tests.runs.again import (
    BLOCK,
    OTHERS,
    ROOT,
    Outcome,
    Plan,
    busy,
    folders,
    known_rows,
    main,
    outcomes_of,
    row_of,
    write_rows,
)

WAIT_MAX_S = 60
BUSY_TICKS = 20
PART = "tests/sometimes"

FAILS_AFTER = """
from pathlib import Path

def test_one() -> None:
    runs = Path(__file__).with_name("runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert len(runs.read_text()) <= {count}

def test_two() -> None:
    pass
"""

SEES_RUNS_BEFORE = """
from pathlib import Path

def test_page() -> None:
    runs = Path(__file__).with_name("runs")
    before = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (before + 1))
    page = Path({page!r}).read_text()
    assert (f"| {{before}} |" in page) if before else page.count("|") == 0
"""

IS_NO_ARGUMENT = """
def pytest_configure(config) -> None:
    assert config.args_source.name == "TESTPATHS"
"""


def page_at(folder: Path) -> Path:
    page = folder / "page.md"
    page.write_text(f"before\n<!-- {BLOCK}: begin -->\n<!-- {BLOCK}: end -->\nbehind\n")
    return page


def project_that_fails_after(root: Path, count: int) -> Path:
    """Write a project with a test that passes so often, and one that always does."""
    folder = root / PART
    folder.mkdir(parents=True, exist_ok=True)
    (root / "pytest.ini").touch()
    (folder / "test_sometimes.py").write_text(FAILS_AFTER.format(count=count))
    return root


def a_plan(root: Path, count: int, *paths: str) -> Plan:
    """Return a plan without workers and busy processes."""
    return Plan(paths or [PART], count, processes=0, workers=0, root=root)


def test_runs_end_with_the_first_that_fails_and_the_row_names_its_test(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 2)
    assert main(a_plan(root, 5), page) == 1
    (row,) = known_rows(page.read_text()).values()
    assert row[:5] == (f"`{PART}`", "2", "2", "0", f"**{PART}/test_sometimes.py::test_one**")
    assert "Run 3 of 5: failed: " in capfd.readouterr().out
    assert page.read_text().endswith("behind\n")


def test_runs_after_a_failure_count_from_none(tmp_path: Path) -> None:
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 1)
    assert main(a_plan(root, 2), page) == 1
    project_that_fails_after(root, 10)
    assert main(a_plan(root, 2), page) == 0
    (row,) = known_rows(page.read_text()).values()
    assert row[:5] == (f"`{PART}`", "2", "2", "0", "0")


def test_runs_count_on_from_those_of_the_page(tmp_path: Path) -> None:
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 5)
    assert main(a_plan(root, 2), page) == 0
    page.write_text(re.sub(r"\d{4}-\d\d-\d\d \|", "2026-11-01 |", page.read_text()))
    assert main(a_plan(root, 3), page) == 0
    (row,) = known_rows(page.read_text()).values()
    assert (row[1], row[4], row[5]) == ("5", "0", "2026-11-01")
    assert row[6] > "2026-11-01"
    assert main(a_plan(root, 3), page) == 1
    (row,) = known_rows(page.read_text()).values()
    assert (row[1], row[5]) == ("5", "2026-11-01")


def test_each_run_is_in_the_row_before_the_next_one_begins(tmp_path: Path) -> None:
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 10)
    (root / "tests" / "test_page.py").write_text(SEES_RUNS_BEFORE.format(page=str(page)))
    assert main(a_plan(root, 3, "tests/test_page.py"), page) == 0


def test_tests_are_distributed_over_workers_as_in_a_whole_run(tmp_path: Path) -> None:
    """The hook of tests/conftest.py leaves a run of arguments to the usual distribution."""
    root = project_that_fails_after(tmp_path, 1)
    (root / "conftest.py").write_text(IS_NO_ARGUMENT)
    assert main(a_plan(root, 1), None) == 0


def test_a_run_without_a_test_has_failed(tmp_path: Path) -> None:
    root = project_that_fails_after(tmp_path, 10)
    (root / "tests" / "test_none.py").write_text("")
    assert main(a_plan(root, 3, "tests/test_none.py"), None) == 1
    assert main(a_plan(root, 3, "tests/test_none.py", PART), None) == 1


def test_a_run_without_a_report_has_failed(tmp_path: Path) -> None:
    root = project_that_fails_after(tmp_path, 10)
    (root / "conftest.py").write_text("import os; os._exit(3)")
    page = page_at(tmp_path)
    assert main(a_plan(root, 3), page) == 1
    (row,) = known_rows(page.read_text()).values()
    assert row[1] == "0"


def test_a_run_that_is_interrupted_is_none(tmp_path: Path) -> None:
    """It said of all other folders that no test was run, and their runs began again."""
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 9)
    assert main(a_plan(root, 1), page) == 0
    before = page.read_text()
    interrupting = (
        "import os, signal\n\ndef test_last() -> None:\n    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    (root / PART / "test_zeros.py").write_text(interrupting)
    with pytest.raises(KeyboardInterrupt):
        main(a_plan(root, 1), page)
    assert page.read_text() == before


def test_rows_of_other_tests_stay(tmp_path: Path) -> None:
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 2)
    others = [row_of(name, [Outcome(7, ())], 2) for name in ("tests/a", "tests/b")]
    write_rows(page, others)
    assert main(a_plan(root, 1), page) == 0
    assert list(known_rows(page.read_text()).values())[:2] == others


def test_each_folder_has_a_row_and_only_that_of_a_failed_test_says_so(tmp_path: Path) -> None:
    page, root = page_at(tmp_path), project_that_fails_after(tmp_path, 1)
    (root / "tests" / "test_alone.py").write_text("def test_three(): pass")
    assert main(Plan((), 2, 0, 0, root), page) == 1
    rows = known_rows(page.read_text())
    assert rows[f"`{PART}`"][1] == "1"
    assert rows[f"`{PART}`"][4] == f"**{PART}/test_sometimes.py::test_one**"
    assert rows[f"`{OTHERS}`"][1:5] == ("2", "1", "0", "0")


def test_a_row_says_the_fewest_processes_beside_any_run() -> None:
    known = row_of(PART, [Outcome(7, ())], 2)
    assert row_of(PART, [Outcome(7, ())], 16, known)[1:5] == ("2", "7", "2", "0")
    assert row_of(PART, [Outcome(7, ())], 1, known)[3] == "1"


def test_a_test_belongs_to_the_nearest_folder() -> None:
    ended = [
        Ended("tests/app/http/test_a.py", "test_1", has_passed=True, played=1),
        Ended("tests/app/test_b.py", "test_2", has_passed=True, played=1),
        Ended("tests/app/test_b.py", "test_2", has_passed=True, played=1),
        Ended("tests/app2/test_c.py", "test_3", has_passed=False, played=1),
        Ended("tests/test_d.py", "test_4", has_passed=True, played=1),
    ]
    assert outcomes_of(ended, ["tests/app", "tests/app/http", "tests/app2", OTHERS]) == {
        "tests/app": Outcome(2, ()),
        "tests/app/http": Outcome(1, ()),
        "tests/app2": Outcome(0, ("tests/app2/test_c.py::test_3",)),
        OTHERS: Outcome(1, ()),
    }


def test_the_folders_of_a_whole_run_are_all_that_have_tests() -> None:
    tested = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    assert {f"tests/{name}" for name in tested if not name.endswith(".py")} == set(folders())


def test_busy_processes_are_busy_and_end_with_the_runs() -> None:
    with busy(2) as processes:
        deadline = time.monotonic() + WAIT_MAX_S
        while any(processor_ticks(each) < BUSY_TICKS for each in processes):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert all(each.returncode is not None for each in processes)


def processor_ticks(process: subprocess.Popen[bytes]) -> int:
    """Return the processor time that a process has had, in ticks of the system."""
    behind_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(behind_name[11]) + int(behind_name[12])

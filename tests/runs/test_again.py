"""Runs of the tests in a row, and the table that they write."""

import subprocess
import time
from pathlib import Path

import pytest
from tests.runs.again import BLOCK, HEADS, Run, busy, known_rows, main, row_of

from foretell.bench.rigs.page import markdown_table

WAIT_MAX_S = 60
BUSY_TICKS = 20

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


def module_that_fails_after(folder: Path, count: int) -> str:
    path = folder / "test_sometimes.py"
    path.write_text(FAILS_AFTER.format(count=count))
    return str(path)


def test_runs_end_with_the_first_that_fails_and_the_row_names_its_test(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page, path = page_at(tmp_path), module_that_fails_after(tmp_path, 2)
    assert main([path], 5, 0, 0, page) == 1
    (row,) = known_rows(page.read_text()).values()
    assert row[:4] == (f"`{path}`", "2", "2", "0")
    assert row[4].endswith("::test_one**")
    assert "Run 3 of 5: failed: " in capfd.readouterr().out


def test_runs_that_all_pass_replace_the_row_of_the_same_tests(tmp_path: Path) -> None:
    page, path = page_at(tmp_path), module_that_fails_after(tmp_path, 0)
    assert main([path], 1, 0, 0, page) == 1
    module_that_fails_after(tmp_path, 10)
    assert main([path], 2, 0, 0, page) == 0
    (row,) = known_rows(page.read_text()).values()
    assert row[:5] == (f"`{path}`", "2", "2", "0", "0")
    assert page.read_text().endswith("behind\n")


def test_each_run_is_in_the_row_before_the_next_one_begins(tmp_path: Path) -> None:
    page, path = page_at(tmp_path), tmp_path / "test_page.py"
    path.write_text(SEES_RUNS_BEFORE.format(page=str(page)))
    assert main([str(path)], 3, 0, 0, page) == 0


def test_tests_are_distributed_over_workers_as_in_a_whole_run(tmp_path: Path) -> None:
    """The hook of tests/conftest.py leaves a run of arguments to the usual distribution."""
    (tmp_path / "conftest.py").write_text(IS_NO_ARGUMENT)
    module_that_fails_after(tmp_path, 1)
    assert main([str(tmp_path)], 1, 0, 0, None) == 0


def test_a_run_without_a_test_has_failed(tmp_path: Path) -> None:
    path = tmp_path / "test_none.py"
    path.write_text("")
    assert main([str(path)], 3, 0, 0, None) == 1


def test_rows_of_other_tests_stay() -> None:
    rows = [row_of(name, [Run(7, ())], 2) for name in ("one", "two")]
    page = f"<!-- {BLOCK}: begin -->\n{markdown_table(HEADS, rows)}\n<!-- {BLOCK}: end -->"
    assert list(known_rows(page).values()) == rows


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

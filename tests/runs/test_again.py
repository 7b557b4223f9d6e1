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

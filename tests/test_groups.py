"""Tests of one group, and those of one module, run in one worker: what they share is made once."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.runs import distribution

ROOT: Final = Path(__file__).parents[1]
TIMEOUT_S: Final = 900.0
"""Only against a hang: three processes import pytest and its plugins, on a busy machine too."""
GROUPED: Final = """
import os
from pathlib import Path

import pytest


@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_writes_its_worker(number):
    Path(f"worker-{number}").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


MODULES: Final = ("a", "b", "c")
UNGROUPED: Final = """
import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range(8))
def test_writes_its_worker(number):
    Path(f"{Path(__file__).stem}-{number}").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""
SCHEDULED: Final = f"""
import runpy

SCHEDULING = runpy.run_path({distribution.__file__!r})["ModuleScheduling"]


def pytest_xdist_make_scheduler(config, log):
    return SCHEDULING(config, log)
"""


def test_a_group_runs_in_one_worker(tmp_path: Path) -> None:
    """pytest 9.2 with pytest-xdist 3.8 ignores groups and says nothing."""
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    run_beside(tmp_path)
    workers = [path.read_text() for path in tmp_path.glob("worker-*")]
    assert len(workers) == 8
    assert len(set(workers)) == 1


def test_a_module_runs_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SCHEDULED)
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    for name in MODULES:
        (tmp_path / f"test_{name}.py").write_text(UNGROUPED)
    run_beside(tmp_path)
    workers = [{path.read_text() for path in tmp_path.glob(f"test_{name}-*")} for name in MODULES]
    assert [len(each) for each in workers] == [1, 1, 1]
    assert len(set.union(*workers)) == 2
    assert len({path.read_text() for path in tmp_path.glob("worker-*")}) == 1


def run_beside(folder: Path) -> None:
    """Run the tests of a folder in two workers."""
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(folder)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=TIMEOUT_S)


def test_what_takes_long_is_there() -> None:
    assert [name for name in distribution.LONG if not (ROOT / name).exists()] == []


def test_modules_that_take_long_come_first() -> None:
    first, last = distribution.LONG[0], distribution.LONG[-1]
    names = ["tests/domain/test_a.py::test_b", f"{last}::test_c", f"{first}::test_d"]
    assert sorted(names, key=distribution.place_of) == names[::-1]

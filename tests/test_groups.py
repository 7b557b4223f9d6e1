"""Tests of one group run in one worker, one after the other: what they share bears no other order."""

import subprocess
import sys
from pathlib import Path
from typing import Final

TIMEOUT_S: Final = 60.0
GROUPED: Final = """
import os
from pathlib import Path

import pytest


@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_writes_its_worker(number):
    Path(f"worker-{number}").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_a_group_runs_in_one_worker(tmp_path: Path) -> None:
    """pytest 9.2 with pytest-xdist 3.8 ignores groups and says nothing."""
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=TIMEOUT_S)
    workers = [path.read_text() for path in tmp_path.glob("worker-*")]
    assert len(workers) == 8
    assert len(set(workers)) == 1

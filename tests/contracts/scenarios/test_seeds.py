"""The seed of a run is the same in its workers and reruns, so that no finding of it is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.contracts.evm import ROOT
from tests.contracts.scenarios.seeds import VARIABLE, fresh_seed, seed_header

RUN_S_MAX: Final = 300
WORKERS: Final = "2"
GIVEN: Final = "20260727"

# The hooks of all tests, in a folder of its own; an installed package has the same name `tests`.
CONFTEST: Final = """
import sys
from types import ModuleType

tests = ModuleType("tests")
tests.__path__ = [{tests!r}]
sys.modules["tests"] = tests
pytest_plugins = ["tests.conftest"]
"""
FAILING: Final = """
from pathlib import Path

import pytest
from tests.contracts.scenarios.seeds import fresh_seed

@pytest.mark.parametrize("number", range(2))
def test_finding(number):
    with Path("seeds").open("a") as seeds:
        print(fresh_seed(), file=seeds)
    assert False
"""


def test_two_calls_in_one_run_give_the_same_seed() -> None:
    assert fresh_seed() == fresh_seed() == int(os.environ[VARIABLE])


def test_the_header_of_a_run_shows_its_seed(pytestconfig: pytest.Config) -> None:
    lines = pytestconfig.hook.pytest_report_header(config=pytestconfig, start_path=ROOT)
    assert seed_header() in lines


@pytest.mark.parametrize("given", ["", GIVEN])
def test_a_failure_is_repeated_with_the_seed_that_the_header_shows(
    tmp_path: Path, given: str
) -> None:
    """Two tests fail in two workers, and fail again when they are run again."""
    (tmp_path / "conftest.py").write_text(CONFTEST.format(tests=str(ROOT / "tests")))
    (tmp_path / "test_finding.py").write_text(FAILING)
    options = ["-n", WORKERS, "--reruns", "1", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {VARIABLE: given},
        text=True,
        timeout=RUN_S_MAX,
    )
    seeds = (tmp_path / "seeds").read_text().split()
    assert re.findall(rf"{VARIABLE}=(\d+)", done.stdout) == [seeds[0]], done.stdout
    assert (len(seeds), len(set(seeds))) == (4, 1)
    assert given in {"", seeds[0]}

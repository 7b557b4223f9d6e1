"""One running sandbox for all examples, and for people who begin with it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import an_installation
from tests.rigs.in_process import unmeasured
from tests.rigs.installation import FORETELL, Running

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHIN_S = 120

Play = Callable[..., str]


@pytest.fixture(scope="session")
def example_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with an_installation(tmp_path_factory.mktemp("examples")) as running:
        asyncio.run(running.start())
        yield running


@pytest.fixture
def environment(example_sandbox: Running) -> dict[str, str]:
    return {**unmeasured(), "FORETELL_DATA": str(example_sandbox.data), "PYTHONPATH": str(EXAMPLES)}


@pytest.fixture
def play(environment: dict[str, str], tmp_path: Path) -> Play:
    """Run an example as its reader does, and return its output."""

    def play(name: str, *arguments: str, paths: str = "") -> str:
        added = os.pathsep.join(filter(None, [str(EXAMPLES), paths]))
        return run_to_end(
            [sys.executable, str(EXAMPLES / name), *arguments],
            tmp_path,
            environment | {"PYTHONPATH": added},
        )

    return play


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Play:
    """Run `foretell` with arguments, and return its standard output."""
    return lambda *arguments: run_to_end([FORETELL, *arguments], tmp_path, environment)


def run_to_end(line: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        line,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

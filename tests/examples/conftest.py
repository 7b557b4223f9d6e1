"""One running sandbox for all examples, and for people who begin with it.

Commands and programs run in this process, because starting Python costs more than most of them do.
"""

import asyncio
import re
import runpy
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.e2e.conftest import an_installation
from tests.rigs.in_process import (
    Call,
    call,
    defaults_of_the_logs,
    own_environment,
    unmeasured,
)
from tests.rigs.installation import Running

__all__ = ["call", "defaults_of_the_logs", "own_environment"]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
WITHIN_S = 900
"""Only against a hang: a program that takes seconds alone takes minutes on a busy machine."""
USUAL_FOLDER = ".foretell"

Play = Callable[..., str]


class OwnQuestion(NamedTuple):
    """A question of a market, and the slug that the market gets."""

    question: str
    slug: str


def own_question(question: str) -> OwnQuestion:
    """Return the question with a word of its own: a test that runs again finds its first market in the sandbox."""
    worded = f"{question} ({secrets.token_hex(4)})"
    return OwnQuestion(worded, re.sub(r"[^a-z0-9]+", "-", worded.lower()).strip("-"))


@pytest.fixture(scope="package")
def example_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A running sandbox for all examples; it ends with them, since it uses a processor even when nobody calls it."""
    with an_installation(tmp_path_factory.mktemp("examples")) as running:
        asyncio.run(running.start())
        yield running


@pytest.fixture
def folder(
    example_sandbox: Running,
    own_environment: None,  # noqa: ARG001 - it changes the working folder
    tmp_path: Path,
) -> Path:
    """Give the folder of a clone in which the sandbox runs: it is the working folder."""
    (tmp_path / USUAL_FOLDER).symlink_to(example_sandbox.data)
    return tmp_path


@pytest.fixture
def play(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Play:
    """Run an example, and return its output."""
    assert Path.cwd() == folder
    monkeypatch.syspath_prepend(EXAMPLES)

    def play(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return play


@pytest.fixture
def command(folder: Path, call: Call) -> Play:
    """Run `foretell` with arguments, and return its standard output."""
    assert Path.cwd() == folder

    def command(*arguments: str) -> str:
        called = call(*arguments)
        assert called.code == 0, called.err
        return called.out

    return command


@pytest.fixture
def environment(example_sandbox: Running) -> dict[str, str]:
    """Give the environment of a command in a process of its own."""
    return {**unmeasured(), "FORETELL_DATA": str(example_sandbox.data)}


def run_program(line: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a program in a process of its own, and return its output."""
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

"""A bot developer goes from the README to a first trade and a running market maker, by its commands alone."""

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from tests.examples.conftest import EXAMPLES, ROOT, WITHIN_S, run_program
from tests.rigs.installation import FORETELL, Running

pytestmark = [pytest.mark.xdist_group("examples")]

README = (ROOT / "README.md").read_text()
USUAL_URL = "http://127.0.0.1:8000"
STARTS = ("make up", "make test")
ENDLESS = (".venv/bin/foretell book", ".venv/bin/python examples/market_maker.py")
"""Commands that run until Ctrl-C."""


def lines_of_the_readme() -> list[str]:
    """Return the commands of the README in their order, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.fixture
def clone(folder: Path) -> Path:
    """Give the folder of the sandbox with what a clone has there after `make up`."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "foretell").symlink_to(FORETELL)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    (folder / "examples").symlink_to(EXAMPLES)
    return folder


def until_interrupted(words: list[str], clone: Path, enough: str) -> str:
    """Run a command until a line has these words, end it by Ctrl-C, and return all that it printed."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words,
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        printed = []
        overdue = threading.Timer(WITHIN_S, process.kill)
        overdue.start()
        for line in process.stdout:
            printed.append(line)
            if enough in line and process.poll() is None:
                process.send_signal(signal.SIGINT)
                enough = "\0"
        process.wait(WITHIN_S)
        overdue.cancel()
    assert enough == "\0", printed
    return "".join(printed)


def test_every_command_of_the_readme_leads_to_a_first_trade_and_a_running_market_maker(
    clone: Path, example_sandbox: Running
) -> None:
    lines = lines_of_the_readme()
    assert lines[:2] == list(STARTS)
    printed: dict[str, str] = {}
    for line in lines[2:]:
        words = shlex.split(line.replace(USUAL_URL, f"http://127.0.0.1:{example_sandbox.port}"))
        if words[0] == "curl":
            assert httpx.get(words[1], timeout=WITHIN_S).status_code == 200
        elif line.startswith(ENDLESS):
            enough = "bid" if " book " in line else "live, live"
            printed[line] = until_interrupted(words, clone, enough)
        else:
            printed[line] = run_program(words, clone, dict(os.environ))
    assert "the trade is CONFIRMED" in printed[".venv/bin/python examples/first_trade.py"]
    (maker,) = [line for line in printed if "market_maker" in line]
    assert re.search(r"canceled \d+ orders\n$", printed[maker]), printed[maker]
    assert "Traceback" not in printed[maker]
    left = [FORETELL, "order", "list", "--as", "trader:3"]
    assert run_program(left, clone, dict(os.environ)) == "none\n"

"""The examples and commands of the README work as they are printed there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ecosystem.clients import FOLDER, NAMES, NPM, node_program
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

PLAYED_WITHIN_S = 900.0
CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()


def play(
    command: list[str], folder: Path, client: Path = FOLDER
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(client), "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=PLAYED_WITHIN_S,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
async def test_the_bot_of_the_readme_trades_with_an_unmodified_client(
    running: Running, name: str
) -> None:
    (bot,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (running.folder / ".foretell").symlink_to(running.data)
    played = play([sys.executable, "-c", bot], running.folder, FOLDER / name)
    assert played.returncode == 0, played.stderr
    placed, bids = played.stdout.splitlines()
    assert "'status': 'live'" in placed
    assert bids == "[OrderSummary(price='0.4', size='10')]"


async def test_the_bot_of_the_readme_in_typescript_trades_with_an_unmodified_client(
    running: Running,
) -> None:
    (bot,) = re.findall(r"```js\n(.*?)```", README, re.DOTALL)
    (running.folder / ".foretell").symlink_to(running.data)
    (running.folder / "node_modules").symlink_to(NPM / "node_modules")
    played = play([node_program(), "--input-type=module", "-e", bot], running.folder)
    assert played.returncode == 0, played.stderr
    assert "status: 'live'" in played.stdout
    assert "[ { price: '0.4', size: '10' } ]" in played.stdout


def test_the_continuous_build_runs_the_test_command_of_the_readme() -> None:
    (test_command,) = re.findall(r"^(make test)\b", README, re.MULTILINE)
    assert test_command in (CHECKOUT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_every_file_that_is_named_is_there(page: str) -> None:
    text = (CHECKOUT / page).read_text()
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    named = re.findall(r"`(\w+/[\w/.]+)`", text)
    roots = (CHECKOUT, CHECKOUT / "src" / "foretell")
    gone = [path for path in (*linked, *named) if not any((root / path).exists() for root in roots)]
    assert gone == []

"""A creator makes a game with commands alone, loses its process again and again, and resolves the game."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from tests.examples.conftest import EXAMPLES, WITHIN_S, Play
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.sandbox.ready import read_ready

pytestmark = [pytest.mark.xdist_group("examples")]

KILLED = """
import os, signal, sys
import typer
from foretell.__main__ import run

words, echo = sys.argv.pop(1), typer.echo

def echo_and_end(line, **options):
    echo(line, **options)
    if words in line:
        os.kill(os.getpid(), signal.SIGKILL)

typer.echo = echo_and_end
run()
"""
"""The command, which kills itself with the line: a reader of the line would kill it later."""
KILLED_AFTER = ("notes:", "is signed and sent", "plan:", "initialize-market-2 is in a block")
"""Words of the line after which the process is killed, one run after the other."""
MARKETS = ["moneyline-home", "moneyline-draw", "moneyline-away", "total-2-5"]
PRICES = {
    "moneyline-home": "Yes 1, No 0",
    "moneyline-draw": "Yes 0, No 1",
    "moneyline-away": "Yes 0, No 1",
    "total-2-5": "Over 1, Under 0",
}
"""What the markets of a game pay that the home team won by 3 to 1."""
PLAN = 1 + len(MARKETS)
"""The transactions of the plan: an approval, and the question of each market."""


def kill_after(words: str, folder: Path, environment: dict[str, str]) -> None:
    """Run the command until a line has these words, and kill it there."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, words, "market", "create", "game.json"],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert words in done.stderr.splitlines()[-1]


def creators_nonce(sandbox: Running) -> int:
    """Return how many transactions the creator has sent."""
    ready = read_ready(sandbox.data)
    address = ready.account(AccountRole.CREATOR).address
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionCount"}
    answer = httpx.post(ready.rpc, json=call | {"params": [address, "latest"]}, timeout=WITHIN_S)
    return int(answer.json()["result"], 16)


def result_of(made: dict[str, str]) -> tuple[str, str]:
    """Return a market and its true outcome."""
    first, second = (each.rpartition(" ") for each in PRICES[made["market"]].split(", "))
    return made["condition"], first[0] if first[2] == "1" else second[0]


def eventually_closed(command: Play, condition: str) -> str:
    """Return the prices of a market once the exchange has read its resolution."""
    give_up_at_s = time.monotonic() + WITHIN_S
    while not (shown := json.loads(command("market", "show", condition, "--json")))["closed"]:
        assert time.monotonic() < give_up_at_s
        time.sleep(0.2)
    return str(shown["prices"])


def test_a_game_survives_kill_9_and_is_paid_for_once(
    example_sandbox: Running, environment: dict[str, str], command: Play, tmp_path: Path
) -> None:
    shutil.copy(EXAMPLES / "game.json", tmp_path)
    before = creators_nonce(example_sandbox)

    for words in KILLED_AFTER:
        kill_after(words, tmp_path, environment)
    made = json.loads(command("market", "create", "game.json", "--json"))

    assert sorted(each["market"] for each in made) == sorted(MARKETS)
    updates = len(MARKETS)  # the final metadata of each market
    assert creators_nonce(example_sandbox) - before == PLAN + updates
    assert json.loads(command("market", "create", "game.json", "--json")) == made

    for each in made:
        resolved = json.loads(command("market", "resolve", *result_of(each), "--json"))
        assert [row["step"] for row in resolved] == ["resolve"]
    shown = {each["market"]: eventually_closed(command, each["condition"]) for each in made}
    assert shown == PRICES

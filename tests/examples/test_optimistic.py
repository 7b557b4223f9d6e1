"""Commands alone take a market of the optimistic stack through a dispute to its answer.

The chain's clock is moved, so the sandbox is one of its own.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import an_installation
from tests.examples.conftest import WITHIN_S
from tests.rigs.in_process import Call, call, defaults_of_the_logs, own_environment
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.sandbox.ready import Ready, read_ready

__all__ = ["call", "defaults_of_the_logs", "own_environment"]

pytestmark = [pytest.mark.xdist_group("optimistic")]

QUESTION = "Does anybody dispute this?"
SLUG = "does-anybody-dispute-this"
LIVENESS_S = 7_200


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Running]:
    folder = tmp_path / "sandbox"
    folder.mkdir()
    with an_installation(folder) as running:
        asyncio.run(running.start())
        yield running


class Hands:
    """Somebody who has the commands and nothing else."""

    def __init__(self, call: Call, ready: Ready, folder: Path) -> None:
        self._call = call
        self._folder = ("--data", str(folder), "--json")
        self.ready = ready

    def run(self, *words: str) -> Any:
        called = self._call(*words, *self._folder)
        assert called.code == 0, called.err
        return json.loads(called.out)

    def refused(self, *words: str) -> str:
        called = self._call(*words, *self._folder)
        assert called.code == 1, called.out
        return called.err

    def chain(self, method: str, *params: object) -> None:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        assert "result" in httpx.post(self.ready.rpc, json=call, timeout=WITHIN_S).json()


@pytest.fixture
def hands(call: Call, own_environment: None, sandbox: Running) -> Hands:  # noqa: ARG001 - the working folder
    return Hands(call, read_ready(sandbox.data), sandbox.data)


def test_a_disputed_answer_is_replaced_reported_and_paid_for(hands: Hands) -> None:
    proposer = hands.ready.account(AccountRole.PROPOSER).address
    hands.run("wallet", "fund", "5000", "--to", proposer)
    hands.run(
        "market", "create", "--question", QUESTION, "--ends", "2035-06-01T12:00:00Z", "--optimistic"
    )

    (proposal,) = hands.run("market", "resolve", SLUG, "Yes")
    assert proposal["step"] == "propose"
    disputed = hands.run("market", "dispute", SLUG, "--as", "trader:1")
    assert disputed["disputed"] == "Yes"
    (second,) = hands.run("market", "resolve", SLUG, "No", "--as", "trader:1")
    assert second["step"] == "propose"
    assert "the proposed answer of does-anybody-dispute-this is No" in hands.refused(
        "market", "resolve", SLUG, "Yes"
    )

    hands.chain("evm_increaseTime", LIVENESS_S + 1)
    hands.chain("evm_mine")
    (report,) = hands.run("market", "resolve", SLUG, "No", "--wait")
    assert report["step"] == "report"
    paid = hands.run("market", "withdraw", SLUG, "--as", "trader:1")
    assert float(paid["withdrawn"]) > 2 * float(disputed["bond"])
    assert hands.run("market", "withdraw", SLUG) == {"withdrawn": "0"}

"""Commands alone take a market of the optimistic stack through a dispute to its answer.

The chain's clock is moved, so the sandbox is one of its own.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
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
from foretell.sdk.amounts import parse_base_units

__all__ = ["call", "defaults_of_the_logs", "own_environment"]

pytestmark = [pytest.mark.xdist_group("optimistic")]

QUESTION = "Does anybody dispute this?"
SLUG = "does-anybody-dispute-this"
LIVENESS_S = 7_200
POLL_S = 0.2


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


def brought_to_the_arbiter(hands: Hands, question: str, slug: str, *, says: str) -> int:
    """Have a proposer's answer disputed twice by the first trader, and return the bond's base units."""
    proposer = hands.ready.account(AccountRole.PROPOSER).address
    hands.run("wallet", "fund", "5000", "--to", proposer)
    ends = ("--ends", "2035-06-01T12:00:00Z", "--optimistic")
    hands.run("market", "create", "--question", question, *ends)
    disputed: dict[str, str] = {}
    for _ in range(2):
        hands.run("market", "resolve", slug, says)
        disputed = hands.run("market", "dispute", slug, "--as", "trader:1")
        assert disputed["disputed"] == says
        early = hands.refused("market", "arbitrate", slug, says, "--as", "trader:1")
        assert hands.ready.account(AccountRole.ADMIN).address in early
    assert "was disputed twice: its arbiter decides" in hands.refused(
        "market", "resolve", slug, says
    )
    return parse_base_units(disputed["bond"], "bond")


def wait_until(has_come: Callable[[], bool]) -> None:
    """Wait for what the APIs show once they have followed the chain."""
    give_up_at_s = time.monotonic() + WITHIN_S
    while not has_come():
        assert time.monotonic() < give_up_at_s
        time.sleep(POLL_S)


def held_units(hands: Hands, account: str) -> int:
    return parse_base_units(hands.run("wallet", "show", "--as", account)["collateral"], "held")


def withdrawn_units(hands: Hands, slug: str, *account: str) -> int:
    return parse_base_units(hands.run("market", "withdraw", slug, *account)["withdrawn"], "paid")


def reward_units(hands: Hands) -> int:
    """Return the reward of a question, as the creation API names it."""
    config = httpx.get(f"{hands.ready.worker}/market-config", timeout=WITHIN_S).json()
    (chain,) = config["chains"]
    return parse_base_units(chain["resolutionStacks"]["alt_moov2"]["rewardUsdc"], "reward")


def test_the_arbiters_answer_is_reported_and_pays_every_bond_to_the_unit(hands: Hands) -> None:
    slug = "who-is-right-in-the-end"
    bond = brought_to_the_arbiter(hands, "Who is right in the end?", slug, says="Yes")
    hands.run("wallet", "deploy", "--as", "trader:2")
    hands.run("wallet", "split", slug, "10", "--as", "trader:2")

    assert hands.run("market", "arbitrate", slug, "No")["decided"] == "No"
    assert "not disputed twice, or is decided already" in hands.refused(
        "market", "arbitrate", slug, "Yes"
    )
    (report,) = hands.run("market", "resolve", slug, "Yes", "--as", "trader:3")
    assert report["step"] == "report"

    # Right twice: both own bonds, half of each other one, and the reward.
    gained = withdrawn_units(hands, slug, "--as", "trader:1")
    assert gained == 2 * bond + 2 * (bond // 2) + reward_units(hands)
    assert withdrawn_units(hands, slug) == 0
    assert withdrawn_units(hands, slug, "--as", "trader:1") == 0
    wait_until(lambda: hands.run("market", "show", slug)["closed"])
    assert hands.run("market", "show", slug)["prices"] == "Yes 0, No 1"
    before = held_units(hands, "trader:2")
    hands.run("wallet", "redeem", slug, "--as", "trader:2")
    wait_until(lambda: held_units(hands, "trader:2") != before)
    assert held_units(hands, "trader:2") - before == 10_000_000


def test_a_question_that_is_too_early_is_asked_again_and_every_bond_goes_back(hands: Hands) -> None:
    slug = "is-it-known-yet"
    bond = brought_to_the_arbiter(hands, "Is it known yet?", slug, says="Yes")

    assert hands.run("market", "arbitrate", slug, "early")["decided"] == "that it is too early"
    (report,) = hands.run("market", "resolve", slug, "Yes", "--as", "trader:3")
    assert report["step"] == "report"

    assert hands.run("market", "show", slug)["closed"] is False
    (proposed,) = hands.run("market", "resolve", slug, "No")
    assert proposed["step"] == "propose"
    hands.chain("evm_increaseTime", LIVENESS_S + 1)
    hands.chain("evm_mine")
    (report,) = hands.run("market", "resolve", slug, "No", "--wait")
    assert report["step"] == "report"
    assert withdrawn_units(hands, slug, "--as", "trader:1") == 2 * bond
    assert withdrawn_units(hands, slug) == 3 * bond + reward_units(hands)

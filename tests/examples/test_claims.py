"""Tokens that a Safe refused in a match are shown, and claimed by a command through the relayer (H-1)."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import httpx
import pytest
from tests.examples.conftest import WITHIN_S, Play, own_question
from tests.rigs.in_process import Call
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.abi import contract_function
from foretell.sandbox.ready import Ready, read_ready
from foretell.sdk.blocking import BlockingForetell, connect
from foretell.sdk.client import KeySigner, Urls

pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("folder")]

REFUSING, TAKING = 7, 8
HANDLER = "0x" + "bb" * 20
REVERTING = "0x5f5ffd"
SET_FALLBACK_HANDLER = contract_function("setFallbackHandler(address)")


@pytest.fixture
def ready(example_sandbox: Running) -> Ready:
    return read_ready(example_sandbox.data)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def a_client(
    ready: Ready, running: Running, number: int, wallet: str
) -> AbstractContextManager[BlockingForetell]:
    traders = [each for each in ready.accounts if each.role == AccountRole.TRADER]
    signer = KeySigner(traders[number - 1].key)
    return connect(Urls.from_ready(running.data, {}), signer, wallet=wallet)


def refuse_tokens(ready: Ready, safe: str) -> None:
    """Give a Safe a handler that refuses every token, as its owner may."""

    def chain(method: str, *params: object) -> None:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        assert "result" in httpx.post(ready.rpc, json=call, timeout=WITHIN_S).json()

    calldata = "0x" + SET_FALLBACK_HANDLER.encode(HANDLER).hex()
    chain("anvil_setCode", HANDLER, REVERTING)
    chain("anvil_setBalance", safe, hex(10**18))
    chain("anvil_impersonateAccount", safe)
    chain("eth_sendTransaction", {"from": safe, "to": safe, "data": calldata})
    chain("anvil_stopImpersonatingAccount", safe)


def owed_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return what commands print of tokens that are owed."""
    names = {"market": "slug", "outcome": "outcome", "size": "size", "token": "asset"}
    return {name: row[field] for name, field in names.items()}


def test_h1_refused_tokens_are_claimed_through_the_relayer_by_a_command(
    command: Play, call: Call, ready: Ready, example_sandbox: Running, stack: ExitStack
) -> None:
    question, slug = own_question("Are refused tokens claimed?")
    command("market", "create", "--question", question, "--ends", "2035-06-01T12:00:00Z")
    own = ("--as", f"trader:{REFUSING}", "--safe", "--json")
    safe = json.loads(command("wallet", "deploy", *own))["wallet"]
    command("wallet", "fund", "100", *own)
    refuse_tokens(ready, safe)
    assert json.loads(command("wallet", "claim", *own)) == []

    refusing = stack.enter_context(a_client(ready, example_sandbox, REFUSING, "safe"))
    taking = stack.enter_context(a_client(ready, example_sandbox, TAKING, "eoa"))
    market = refusing.apis.discovery.market(slug)
    bid = refusing.trader.buy(market.token("No"), price="0.50", size="10")
    assert bid.status == "live"
    taken = taking.trader.buy(market.token("Yes"), price="0.50", size="10")
    assert [each.status for each in taking.trader.wait_until_settled(taken.order_id)] == [
        "CONFIRMED"
    ]

    (owed,) = refusing.portfolio.owed()
    assert (owed["asset"], owed["size"]) == (market.token("No"), 10)
    shown = json.loads(command("wallet", "show", *own))
    assert (shown["positions"], shown["owed"]) == ([], [owed_row(owed)])
    refused = call("wallet", "claim", *own)
    assert refused.code == 1
    assert "call_reverts" in refused.err or "execution_failed" in refused.err
    friend = taking.trader.maker
    (claimed,) = json.loads(command("wallet", "claim", "--to", friend, *own))
    assert claimed == owed_row(owed)
    assert refusing.portfolio.owed() == []

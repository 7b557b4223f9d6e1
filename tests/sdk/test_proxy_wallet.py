"""The client of a proxy wallet's owner makes the requests that an ecosystem's client makes, byte for byte."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from tests.rigs.scripted_api import ScriptedApi, a_session
from tests.rigs.values import NOW_S, a_word, an_address

from foretell.domain.contracts.proxy_wallet import CALLS_PER_PROXY_MAX
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.credentials import Credentials
from foretell.domain.values.hexadecimal import keccak256, parse_address
from foretell.sdk.proxy_wallet import ProxyWalletClient
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parents[2] / "docs" / "reference" / "signing-vectors.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text())
(CASE,) = VECTORS["proxyCalls"]
REQUEST: dict[str, Any] = CASE["request"]
PARAMS: dict[str, str] = REQUEST["signatureParams"]
CALLS = [
    InnerCall(parse_address(call["to"]), bytes.fromhex(call["data"][2:])) for call in CASE["calls"]
]
PAYLOAD = {"address": PARAMS["relay"], "nonce": REQUEST["nonce"]}


@pytest.fixture
def api() -> ScriptedApi:
    api = ScriptedApi()
    api.prepare("GET /relay-payload", PAYLOAD)
    api.prepare("POST /submit", {"transactionID": "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a"})
    return api


@pytest.fixture
async def wallet(api: ScriptedApi) -> AsyncIterator[ProxyWalletClient]:
    async with a_session(api) as session:
        own = parse_address(REQUEST["proxyWallet"])
        trader = TradingClient(
            session.trading,
            Wallet(bytes.fromhex(VECTORS["privateKey"][2:]), proxy_wallet=own),
            SANDBOX_CHAIN_ID,
            session.deployment.separators(),
            lambda: NOW_S,
        )
        trader.credentials = Credentials("key", "c2VjcmV0", "pass")
        safe = session.deployment.safe_of(trader.wallet.address)
        relayer = RelayerClient(session.relayer, trader, session.deployment, safe, poll_s=0.001)
        factory, hub = parse_address(REQUEST["to"]), parse_address(PARAMS["relayHub"])
        yield ProxyWalletClient(relayer, factory, hub, own)


def mined(state: str = "STATE_MINED", **fields: Any) -> list[dict[str, Any]]:
    return [{"state": state, "transactionHash": a_word("tx"), **fields}]


async def test_calls_are_requested_as_the_published_vector_has_them(
    api: ScriptedApi, wallet: ProxyWalletClient
) -> None:
    api.prepare("GET /transaction", mined())
    assert await wallet.execute(CALLS) == a_word("tx")
    assert api.requests("POST /submit")[0].json() == REQUEST
    asked = api.requests("GET /relay-payload")[0].query
    assert asked == f"address={VECTORS['owner']}&type=PROXY"


def test_an_independent_signer_makes_the_vector() -> None:
    words = (0, 0, int(PARAMS["gasLimit"]), int(REQUEST["nonce"]))
    texts = [REQUEST["from"], REQUEST["to"], REQUEST["data"]]
    parts = [b"rlx:", *(bytes.fromhex(each[2:]) for each in texts)]
    parts += [each.to_bytes(32, "big") for each in words]
    parts += [bytes.fromhex(PARAMS[name][2:]) for name in ("relayHub", "relay")]
    message = encode_defunct(keccak256(b"".join(parts)))
    signature = Account.sign_message(message, VECTORS["privateKey"]).signature
    assert REQUEST["signature"] == "0x" + bytes(signature).hex()


async def test_more_calls_than_one_request_holds_are_several_requests_in_order(
    api: ScriptedApi, wallet: ProxyWalletClient
) -> None:
    api.prepare("GET /transaction", mined())
    many = [InnerCall(an_address("to"), bytes([i])) for i in range(CALLS_PER_PROXY_MAX + 1)]
    await wallet.execute(many)
    first, second = (each.json()["data"] for each in api.requests("POST /submit"))
    assert first.count(an_address("to")[2:]) == CALLS_PER_PROXY_MAX
    assert second.count(an_address("to")[2:]) == 1


async def test_calls_that_revert_are_refused_with_their_cause(
    api: ScriptedApi, wallet: ProxyWalletClient
) -> None:
    api.prepare("GET /transaction", mined("STATE_FAILED", failureReason="NotOwner"))
    with pytest.raises(ApiRefused, match="POST /submit answered 200: NotOwner"):
        await wallet.execute(CALLS)


async def test_a_wallet_exists_if_the_relayer_says_so(
    api: ScriptedApi, wallet: ProxyWalletClient
) -> None:
    api.prepare("GET /deployed", {"deployed": False}, {"deployed": True})
    assert [await wallet.is_deployed() for _ in range(2)] == [False, True]
    assert "type=PROXY" in api.requests("GET /deployed")[0].query

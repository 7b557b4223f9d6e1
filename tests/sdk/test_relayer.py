from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.scripted_api import DEPLOYMENT, ScriptedApi, a_session
from tests.rigs.values import NOW_S, a_key, a_word, an_address

from foretell.domain.contracts.safe import (
    OPERATION_CALL,
    OPERATION_DELEGATECALL,
    InnerCall,
    SafeTx,
    encode_multi_send,
)
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.credentials import Credentials
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = pytest.mark.anyio

KEY = a_key("owner")
ID = "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a"
CALLS = [InnerCall(an_address("token"), b"\x01"), InnerCall(an_address("other"), b"\x02")]
ACCEPTED = {"transactionID": ID}


@pytest.fixture
def api() -> ScriptedApi:
    api = ScriptedApi()
    api.prepare("GET /nonce", {"nonce": "7"})
    api.prepare("POST /submit", ACCEPTED)
    return api


@pytest.fixture
async def owner(api: ScriptedApi) -> AsyncIterator[RelayerClient]:
    async with a_session(api) as session:
        separators = session.deployment.separators()
        trader = TradingClient(
            session.trading, Wallet(KEY), SANDBOX_CHAIN_ID, separators, lambda: NOW_S
        )
        trader.credentials = Credentials("key", "c2VjcmV0", "pass")
        safe = session.deployment.safe_of(trader.wallet.address)
        yield RelayerClient(session.relayer, trader, session.deployment, safe, poll_s=0.001)


def a_state(state: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"state": state, "transactionHash": a_word("tx"), **fields}]


@pytest.mark.parametrize("state", ["STATE_MINED", "STATE_CONFIRMED"])
async def test_a_transaction_is_awaited_until_it_is_in_a_block(
    api: ScriptedApi, owner: RelayerClient, state: str
) -> None:
    api.prepare("GET /transaction", [], a_state("STATE_NEW"), a_state("STATE_EXECUTED"))
    api.prepare("GET /transaction", a_state(state))
    assert await owner.execute(CALLS[:1]) == a_word("tx")
    assert len(api.requests("GET /transaction")) == 4


@pytest.mark.parametrize("state", ["STATE_FAILED", "STATE_INVALID"])
async def test_a_transaction_that_failed_is_refused_with_its_cause(
    api: ScriptedApi, owner: RelayerClient, state: str
) -> None:
    api.prepare("GET /transaction", a_state(state, failureReason="GS013"))
    with pytest.raises(ApiRefused, match="POST /submit answered 200: GS013"):
        await owner.wait_until_mined(ACCEPTED)


async def test_one_call_is_signed_by_itself(api: ScriptedApi, owner: RelayerClient) -> None:
    await owner.submit(CALLS[:1])
    body = api.requests("POST /submit")[0].json()
    safe_tx = SafeTx(owner.safe, CALLS[0].to, CALLS[0].calldata, 7, OPERATION_CALL)
    digest = safe_tx.digest(SANDBOX_CHAIN_ID)
    assert (body["to"], body["data"], body["nonce"]) == (checksum_address(CALLS[0].to), "0x01", "7")
    assert body["signatureParams"]["operation"] == str(OPERATION_CALL)
    assert body["signature"] == "0x" + sign_digest(digest, KEY).hex()


async def test_several_calls_are_signed_as_one_bundle(
    api: ScriptedApi, owner: RelayerClient
) -> None:
    await owner.submit(CALLS)
    body = api.requests("POST /submit")[0].json()
    assert body["to"] == checksum_address(DEPLOYMENT.multi_send)
    assert body["data"] == "0x" + encode_multi_send(CALLS).hex()
    assert body["signatureParams"]["operation"] == str(OPERATION_DELEGATECALL)


async def test_a_safe_is_requested_at_the_address_that_it_will_have(
    api: ScriptedApi, owner: RelayerClient
) -> None:
    api.prepare("GET /deployed", {"deployed": False}, {"deployed": True})
    api.prepare("GET /transaction", a_state("STATE_MINED"))
    assert await owner.create_safe() == await owner.create_safe() == owner.safe
    assert len(api.requests("POST /submit")) == 1
    body = api.requests("POST /submit")[0].json()
    assert (body["type"], body["proxyWallet"]) == ("SAFE-CREATE", checksum_address(owner.safe))


async def test_a_submission_is_authenticated_by_the_owners_credentials(
    api: ScriptedApi, owner: RelayerClient
) -> None:
    await owner.submit(CALLS)
    (seen,) = api.requests("POST /submit")
    assert seen.headers["service_api_key"] == "key"
    assert seen.headers["service_signature"] != ""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.scripted_api import ScriptedApi, a_session
from tests.rigs.values import a_key, a_word

from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.creation.request import Challenge
from foretell.domain.errors.command import CreationEnded
from foretell.domain.values.eip712 import address_of_key, recover_signer
from foretell.domain.values.hexadecimal import checksum_address, keccak256, word_of
from foretell.sdk.creation import CreatorClient
from foretell.sdk.signing.signers import KeySigner

pytestmark = pytest.mark.anyio

KEY = a_key("creator")
CREATOR = checksum_address(address_of_key(KEY))
REQUEST = "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a"
PAYLOAD = '{"title": "Will it rain?"}'
CHALLENGE = {
    "requestId": REQUEST,
    "creator": CREATOR,
    "payloadHash": word_of(keccak256(PAYLOAD.encode())),
    "nonce": a_word("nonce"),
    "expiresAt": 1_800_000_000_000,
    "chainId": SANDBOX_CHAIN_ID,
}


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi()


@pytest.fixture
async def creator(api: ScriptedApi) -> AsyncIterator[CreatorClient]:
    async with a_session(api) as session:
        caller = session.caller(KEY)
        yield CreatorClient(session.worker, caller, KeySigner(KEY), SANDBOX_CHAIN_ID, poll_s=0.001)


def a_request(status: str, **fields: Any) -> dict[str, Any]:
    return {"request": {"status": status, **fields}}


async def test_a_request_is_opened_with_the_hash_of_the_payload_that_is_sent(
    api: ScriptedApi, creator: CreatorClient
) -> None:
    api.prepare("POST /prepare-auth", CHALLENGE)
    challenge = await creator.open_request(PAYLOAD)
    assert api.received[0].json() == {
        "creator": CREATOR,
        "chainId": SANDBOX_CHAIN_ID,
        "payloadHash": challenge.payload_hash,
    }
    assert (challenge.request_id, challenge.nonce) == (REQUEST, a_word("nonce"))


async def test_the_payload_is_sent_with_a_signature_of_the_creator(
    api: ScriptedApi, creator: CreatorClient
) -> None:
    api.prepare("POST /prepare-auth", CHALLENGE)
    api.prepare("POST /prepare", {"status": "prepare_running"})
    challenge = await creator.open_request(PAYLOAD)
    await creator.prepare(challenge, PAYLOAD, {"eventImage": ("a.png", b"PNG", "image/png")})
    sent = api.requests("POST /prepare")[0].body
    assert PAYLOAD.encode() in sent
    assert signer_of(challenge, sent) == CREATOR.lower()


def signer_of(challenge: Challenge, form: bytes) -> str:
    signature = form.split(b'"signature":"0x')[1].split(b'"')[0]
    return recover_signer(challenge.digest(), bytes.fromhex(signature.decode()))


async def test_a_plan_is_waited_for(api: ScriptedApi, creator: CreatorClient) -> None:
    plan = [{"id": "fee"}, {"id": "initialize"}]
    api.prepare("GET /pending", a_request("prepare_running"), a_request("prepare_running"))
    api.prepare("GET /pending", a_request("prepared", prepared={"txPlan": plan}))
    assert await creator.wait_for_plan(REQUEST) == plan
    assert api.received[0].query == f"requestId={REQUEST}"


async def test_a_request_that_failed_is_refused_with_its_cause(
    api: ScriptedApi, creator: CreatorClient
) -> None:
    api.prepare("GET /pending", a_request("failed", errorMessage="the slug is taken"))
    with pytest.raises(CreationEnded, match="the slug is taken"):
        await creator.wait_for_plan(REQUEST)


async def test_a_finalization_in_progress_is_requested_again(
    api: ScriptedApi, creator: CreatorClient
) -> None:
    api.prepare("POST /finalize", {"status": "finalize_in_progress"}, {"status": "finalized"})
    assert await creator.finalize(REQUEST) == {"status": "finalized"}
    bodies = [each.json() for each in api.received]
    assert bodies == [{"requestId": REQUEST, "creator": CREATOR, "txs": []}] * 2


async def test_hashes_are_confirmed_as_they_were_sent(
    api: ScriptedApi, creator: CreatorClient
) -> None:
    api.prepare("POST /tx-confirm", {"confirmedTxs": []})
    txs = [{"id": "fee", "hash": a_word("fee")}]
    await creator.confirm(REQUEST, txs)
    assert api.received[0].json() == {"requestId": REQUEST, "creator": CREATOR, "txs": txs}

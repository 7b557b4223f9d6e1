from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.scripted_api import Desk, a_session
from tests.rigs.values import a_key, a_word

from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.creation.request import Challenge
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.eip712 import address_of_key, recover_signer
from foretell.domain.values.hexadecimal import checksum_address, keccak256, word_of
from foretell.sandbox.demo.create_market import CHECKED, resume_market
from foretell.sandbox.demo.session import DemoSession
from foretell.sdk import http
from foretell.sdk.creation import CreatorClient

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
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def session(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DemoSession]:
    monkeypatch.setattr(http, "POLL_S", 0.001)
    async with a_session(desk) as session:
        yield session


@pytest.fixture
def creator(session: DemoSession) -> CreatorClient:
    return CreatorClient(session.worker, session.caller(KEY), KEY, SANDBOX_CHAIN_ID)


def a_request(status: str, **fields: Any) -> dict[str, Any]:
    return {"request": {"status": status, **fields}}


async def test_a_challenge_is_asked_for_the_hash_of_the_very_payload_that_is_sent(
    desk: Desk, creator: CreatorClient
) -> None:
    desk.say("POST /prepare-auth", CHALLENGE)
    challenge = await creator.open_request(PAYLOAD)
    assert desk.seen[0].json() == {
        "creator": CREATOR,
        "chainId": SANDBOX_CHAIN_ID,
        "payloadHash": challenge.payload_hash,
    }
    assert (challenge.request_id, challenge.nonce) == (REQUEST, a_word("nonce"))


async def test_what_is_sent_is_signed_by_the_creator(desk: Desk, creator: CreatorClient) -> None:
    desk.say("POST /prepare-auth", CHALLENGE)
    desk.say("POST /prepare", {"status": "prepare_running"})
    challenge = await creator.open_request(PAYLOAD)
    await creator.prepare(challenge, PAYLOAD, {"eventImage": ("a.png", b"PNG", "image/png")})
    sent = desk.asked("POST /prepare")[0].body
    assert PAYLOAD.encode() in sent
    assert signer_of(challenge, sent) == CREATOR.lower()


def signer_of(challenge: Challenge, form: bytes) -> str:
    signature = form.split(b'"signature":"0x')[1].split(b'"')[0]
    return recover_signer(challenge.digest(), bytes.fromhex(signature.decode()))


async def test_a_plan_is_waited_for(desk: Desk, creator: CreatorClient) -> None:
    plan = [{"id": "fee"}, {"id": "initialize"}]
    desk.say("GET /pending", a_request("prepare_running"), a_request("prepare_running"))
    desk.say("GET /pending", a_request("prepared", prepared={"txPlan": plan}))
    assert await creator.wait_for_plan(REQUEST) == plan
    assert desk.seen[0].query == f"requestId={REQUEST}"


async def test_a_request_that_failed_is_told_with_its_cause(
    desk: Desk, creator: CreatorClient
) -> None:
    desk.say("GET /pending", a_request("failed", errorMessage="the slug is taken"))
    with pytest.raises(ApiRefused, match="the slug is taken"):
        await creator.wait_for_plan(REQUEST)


async def test_a_finalization_in_progress_is_asked_again(
    desk: Desk, creator: CreatorClient
) -> None:
    desk.say("POST /finalize", {"status": "finalize_in_progress"}, {"status": "finalized"})
    assert await creator.finalize(REQUEST) == {"status": "finalized"}
    bodies = [each.json() for each in desk.seen]
    assert bodies == [{"requestId": REQUEST, "creator": CREATOR, "txs": []}] * 2


async def test_hashes_are_confirmed_as_they_were_sent(desk: Desk, creator: CreatorClient) -> None:
    desk.say("POST /tx-confirm", {"confirmedTxs": []})
    txs = [{"id": "fee", "hash": a_word("fee")}]
    await creator.confirm(REQUEST, txs)
    assert desk.seen[0].json() == {"requestId": REQUEST, "creator": CREATOR, "txs": txs}


@pytest.mark.parametrize("status", ["auth_pending", "prepared", "failed", "expired"])
async def test_a_request_that_was_not_checked_is_begun_anew(
    desk: Desk, session: DemoSession, status: str
) -> None:
    desk.say("GET /pending", a_request(status))
    assert status not in CHECKED
    assert await resume_market(session, KEY, REQUEST) is None


async def test_a_request_that_nobody_knows_is_begun_anew(desk: Desk, session: DemoSession) -> None:
    desk.say("GET /pending", {"error": {"code": "request_not_found"}}, status=404)
    assert await resume_market(session, KEY, REQUEST) is None


async def test_a_worker_that_cannot_say_is_not_taken_for_one_that_knows_nothing(
    desk: Desk, session: DemoSession
) -> None:
    desk.say("GET /pending", {"error": {"code": "store_unavailable"}}, status=503)
    with pytest.raises(ApiRefused, match="503"):
        await resume_market(session, KEY, REQUEST)

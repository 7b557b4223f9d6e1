"""Notes of a creation, against a worker whose answers a test prepares."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.scripted_api import NO_NODE, ScriptedApi, a_client
from tests.rigs.values import a_word
from tests.sdk.test_creation import CHALLENGE, CREATOR, KEY, PAYLOAD, REQUEST

from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import ApiRefused, CreationEnded, UnfinishedCreation
from foretell.sdk.chain import ChainAccount
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.market_creation import CreatedMarket, CreationNotes, Image, MarketCreation
from foretell.sdk.signing.signers import KeySigner

pytestmark = pytest.mark.anyio

IMAGE = Image("eventImage", "a.png", b"PNG", "image/png")
RESULT = {
    "key": "binary",
    "conditionId": a_word("condition"),
    "tokenA": "1",
    "tokenB": "2",
    "exchange": CREATOR,
}
MARKET = CreatedMarket(
    market_key="binary",
    condition_id=a_word("condition"),
    token_a="1",
    token_b="2",
    exchange=CREATOR,
)


@pytest.fixture
def api() -> ScriptedApi:
    api = ScriptedApi()
    api.prepare("POST /prepare-auth", CHALLENGE)
    api.prepare("POST /prepare", {"status": "prepare_in_progress"})
    api.prepare("POST /tx-confirm", {"confirmedTxs": []})
    api.prepare("POST /finalize", {"status": "finalized", "registerResults": [RESULT]})
    return api


@pytest.fixture
async def creation(api: ScriptedApi, tmp_path: Path) -> AsyncIterator[MarketCreation]:
    async with a_client(api) as worker, JsonRpc(NO_NODE) as rpc:
        account = ChainAccount(rpc, KeySigner(KEY), SANDBOX_CHAIN_ID)
        yield MarketCreation(worker, account, tmp_path / "notes")


def a_request(status: str, **fields: Any) -> dict[str, Any]:
    return {"request": {"status": status, **fields}}


PREPARED = a_request("prepared", prepared={"txPlan": []})


async def test_notes_are_private_and_end_with_the_markets(
    api: ScriptedApi, creation: MarketCreation, tmp_path: Path
) -> None:
    api.prepare("GET /pending", PREPARED)
    creation.begin(PAYLOAD, [IMAGE])
    assert await creation.run() == [MARKET]
    assert creation.read() == CreationNotes(PAYLOAD, [IMAGE], REQUEST, {}, [MARKET])
    assert (tmp_path / "notes" / "creation.json").stat().st_mode & 0o077 == 0
    sent = len(api.received)
    assert await creation.run() == [MARKET]
    assert len(api.received) == sent


async def test_another_payload_waits_for_the_end_of_the_first(
    api: ScriptedApi, creation: MarketCreation
) -> None:
    api.prepare("GET /pending", PREPARED)
    creation.begin(PAYLOAD, [IMAGE])
    creation.begin(PAYLOAD, [])
    assert creation.read().images == [IMAGE]
    with pytest.raises(UnfinishedCreation, match="finish it, or use another"):
        creation.begin("{}", [])
    await creation.run()
    creation.begin("{}", [])
    assert creation.read() == CreationNotes("{}")


@pytest.mark.parametrize(
    ("status", "opened"), [("auth_pending", 2), ("prepare_running", 1), ("prepared", 1)]
)
async def test_a_request_is_opened_again_only_if_nobody_works_on_it(
    api: ScriptedApi, creation: MarketCreation, status: str, opened: int
) -> None:
    api.prepare("GET /pending", a_request("failed", errorMessage="stopped here"), a_request(status))
    api.prepare("GET /pending", PREPARED)
    creation.begin(PAYLOAD, [IMAGE])
    with pytest.raises(CreationEnded, match="stopped here"):
        await creation.run()
    await creation.run()
    assert len(api.requests("POST /prepare-auth")) == opened


async def test_a_request_that_the_worker_does_not_know_is_opened_again(
    api: ScriptedApi, creation: MarketCreation
) -> None:
    api.prepare("GET /pending", a_request("failed", errorMessage="stopped here"))
    creation.begin(PAYLOAD, [IMAGE])
    with pytest.raises(CreationEnded):
        await creation.run()
    api.prepared["GET /pending"] = []
    api.prepare("GET /pending", {"error": {"code": "request_not_found"}}, status=404)
    api.prepare("GET /pending", PREPARED)
    assert await creation.run() == [MARKET]
    assert len(api.requests("POST /prepare-auth")) == 2


async def test_a_worker_that_is_broken_does_not_mean_an_unknown_request(
    api: ScriptedApi, creation: MarketCreation
) -> None:
    api.prepare("GET /pending", a_request("failed", errorMessage="stopped here"))
    creation.begin(PAYLOAD, [IMAGE])
    with pytest.raises(CreationEnded):
        await creation.run()
    api.prepared["GET /pending"] = []
    api.prepare("GET /pending", {"error": {"code": "internal_error"}}, status=500)
    with pytest.raises(ApiRefused, match="500"):
        await creation.run()

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.in_process import installed

from foretell.chain.reader import Reader
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    AccountRole,
    sandbox_account,
    sandbox_accounts,
)
from foretell.sandbox.ready import NOT_SEEDED, SeededMarket, describe
from foretell.sandbox.seed import (
    SEED_NOTE,
    SEED_SLUG,
    approve_traders,
    seed_draft,
    seed_market,
    stored_request_id,
)
from foretell.sandbox.session import SandboxSession
from foretell.sdk.creation import CreatorClient
from foretell.sdk.payloads import binary_payload, picture
from foretell.sdk.signing.signers import KeySigner
from foretell.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(settings: Settings) -> AsyncIterator[SandboxSession]:
    """An installation without a market, on a chain that mines more often."""
    async with installed(settings.model_copy(update={"chain_block_s": 0.1})) as running:
        deployment = running.deployment
        assert deployment is not None
        ready = describe(settings.base_url, settings.devchain_url, deployment, NOT_SEEDED)
        async with SandboxSession.open(ready, deployment) as session:
            yield session


async def seeded(session: SandboxSession, note: Path) -> tuple[SeededMarket, bool]:
    """Return the first market of the sandbox, and whether it had to be created."""
    created: list[bool] = []
    market = await seed_market(session, note, lambda: created.append(True))
    return market, bool(created)


async def begin(
    session: SandboxSession, note: Path
) -> tuple[CreatorClient, str, list[dict[str, str]]]:
    """Do what a start does until its creator has sent the plan, and no more."""
    key = session.account(AccountRole.CREATOR)
    client = CreatorClient(session.worker, session.caller(key), KeySigner(key), SANDBOX_CHAIN_ID)
    payload = binary_payload(seed_draft(session))
    challenge = await client.open_request(payload)
    await asyncio.to_thread(note.write_text, challenge.request_id)
    images = {"eventImage": ("cover.png", picture(), "image/png")}
    await client.prepare(challenge, payload, images)
    plan = await client.wait_for_plan(challenge.request_id)
    return client, challenge.request_id, await client.execute(plan)


async def creators_nonce(session: SandboxSession) -> int:
    creator = sandbox_account(AccountRole.CREATOR, SANDBOX_CHAIN_ID).address
    return int(await session.rpc.call("eth_getTransactionCount", creator, "latest"), 16)


@pytest.mark.parametrize("content", ["", "0c1d"])
def test_a_note_holds_the_id_of_a_request(tmp_path: Path, content: str) -> None:
    note = tmp_path / SEED_NOTE
    assert stored_request_id(note) == ""
    note.write_text(content)
    assert stored_request_id(note) == content


async def test_a_market_is_created_once_and_found_by_every_later_start(
    session: SandboxSession, tmp_path: Path
) -> None:
    """The note is of a request that another database has."""
    note = tmp_path / SEED_NOTE
    await asyncio.to_thread(note.write_text, "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a")
    market, is_created = await seeded(session, note)
    assert (market.slug, is_created) == (SEED_SLUG, True)
    book: Any = await session.trading.get("/book", token_id=market.token_yes)
    assert (book["market"], book["bids"]) == (market.condition_id, [])
    sent = await creators_nonce(session)
    assert await seeded(session, note) == (market, False)
    assert await creators_nonce(session) == sent


async def test_a_start_that_was_killed_after_the_check_continues_from_there(
    session: SandboxSession, tmp_path: Path
) -> None:
    note = tmp_path / SEED_NOTE
    client, request_id, sent = await begin(session, note)
    await client.confirm(request_id, sent)
    await client.finalize(request_id)
    nonce = await creators_nonce(session)
    market, _ = await seeded(session, note)
    assert (market.slug, stored_request_id(note)) == (SEED_SLUG, request_id)
    assert await creators_nonce(session) == nonce + 1


async def test_a_start_that_was_killed_before_the_check_repeats_the_creation(
    session: SandboxSession, tmp_path: Path
) -> None:
    note = tmp_path / SEED_NOTE
    _, request_id, _ = await begin(session, note)
    market, _ = await seeded(session, note)
    assert stored_request_id(note) != request_id
    found = await session.discovery.get("/markets")
    assert [each["slug"] for each in found] == [market.slug]


async def test_every_trader_of_the_sandbox_may_trade_at_once(session: SandboxSession) -> None:
    await approve_traders(session)
    reader = Reader(session.rpc, session.deployment)
    traders = sandbox_accounts(AccountRole.TRADER, SANDBOX_CHAIN_ID)
    exchange = session.deployment.exchange
    units = [await reader.allowance_units(each.address, exchange) for each in traders]
    assert min(units) > 10**30

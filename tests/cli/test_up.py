import asyncio
import io
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.app.rig import installed, sandbox_settings
from tests.rigs.values import a_key

from foretell.app.installation import Installation
from foretell.bench.rigs.world import make_world
from foretell.chain import devchain
from foretell.chain.reader import Reader
from foretell.cli import up
from foretell.cli.up import NOT_YET, SEED_NOTE, SEED_SLUG, run_up
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    AccountRole,
    sandbox_account,
    sandbox_accounts,
)
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.errors.storage import FolderInUse
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.ready import Ready, SeededMarket, describe, read_ready, write_ready
from foretell.sdk import http
from foretell.sdk.creation import CreatorClient
from foretell.sdk.payloads import binary_payload, picture
from foretell.settings import Settings

MARKET = SeededMarket("0x01", "11", "12", "rain")


def a_ready(settings: Settings) -> Ready:
    deployment = make_world(a_key("up")).deployment
    return describe(settings.base_url, up._rpc_url(settings), deployment, MARKET)


def greeting(settings: Settings) -> str:
    console = Console(file=io.StringIO(), width=60)
    up._print_where(console, a_ready(settings), settings, 7.25)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_greeting_says_where_everything_is(settings: Settings) -> None:
    told = greeting(settings).replace("\n", "")
    ready = a_ready(settings)
    urls = (ready.clob, ready.worker, ready.relayer, ready.data, ready.discovery, ready.rpc)
    assert [url for url in urls if url not in told] == []
    assert "Foretell runs (7.2 s)" in told
    assert f"chain id {SANDBOX_CHAIN_ID}" in told


def test_the_greetings_commands_are_lines_that_can_be_copied(settings: Settings) -> None:
    lines = greeting(settings).splitlines()
    assert f"  foretell demo --data {settings.data}" in lines
    assert f"  curl '{settings.base_url}/clob/book?token_id=11'" in lines


def test_the_greeting_names_the_folder_only_where_it_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "  foretell demo\n" in greeting(Settings())
    monkeypatch.setenv("FORETELL_DATA", "elsewhere")
    assert "  foretell demo\n" in greeting(Settings())


def test_the_command_is_named_as_it_was_called(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/venv/bin/foretell", "up"])
    assert f"  /opt/venv/bin/foretell demo --data {settings.data}" in greeting(settings)


@pytest.mark.parametrize("content", ["", "0c1d"])
def test_a_note_is_what_was_noted(tmp_path: Path, content: str) -> None:
    note = tmp_path / SEED_NOTE
    assert up._noted(note) == ""
    note.write_text(content)
    assert up._noted(note) == content


def test_a_node_of_ones_own_is_not_for_public_keys(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr("http://127.0.0.1:1"))
    with pytest.raises(SandboxOnly, match="unset FORETELL_RPC_URL, or use foretell serve"):
        run_up(settings, Console(quiet=True))
    assert not settings.data.exists()


def test_a_second_start_on_a_folder_leaves_what_the_first_says_of_itself(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "set_up_logs", lambda _: None)
    first = Installation(settings)
    first.take_folder()
    write_ready(settings.data, a_ready(settings))
    with pytest.raises(FolderInUse):
        run_up(settings, Console(quiet=True))
    assert read_ready(settings.data) == a_ready(settings)


@pytest.fixture
async def session(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DemoSession]:
    """An installation without a market, on a chain and with clients that do not dawdle."""
    monkeypatch.setattr(devchain, "PULSE_S", 0.1)
    monkeypatch.setattr(http, "POLL_S", 0.05)
    async with installed(settings) as running:
        assert running.deployment is not None
        rpc_url = up._rpc_url(settings)
        ready = describe(settings.base_url, rpc_url, running.deployment, NOT_YET)
        async with DemoSession.open(ready, running.deployment, Console(quiet=True)) as session:
            yield session


async def seeded(session: DemoSession, note: Path) -> tuple[SeededMarket, str]:
    """Return the market that the sandbox begins with, and what was said about it."""
    console = Console(file=io.StringIO())
    market = await up._seed(session, console, note)
    assert isinstance(console.file, io.StringIO)
    return market, console.file.getvalue()


async def begin(
    session: DemoSession, note: Path
) -> tuple[CreatorClient, str, list[dict[str, str]]]:
    """Do what a start does until its creator has sent the plan, and no more."""
    key = session.account(AccountRole.CREATOR)
    client = CreatorClient(session.worker, session.caller(key), key, SANDBOX_CHAIN_ID)
    payload = binary_payload(up._wish(session))
    challenge = await client.open_request(payload)
    await asyncio.to_thread(note.write_text, challenge.request_id)
    images = {"eventImage": ("cover.png", picture(), "image/png")}
    await client.prepare(challenge, payload, images)
    plan = await client.wait_for_plan(challenge.request_id)
    return client, challenge.request_id, await client.execute(plan)


async def creators_nonce(session: DemoSession) -> int:
    creator = sandbox_account(AccountRole.CREATOR, SANDBOX_CHAIN_ID).address
    return int(await session.rpc.call("eth_getTransactionCount", creator, "latest"), 16)


@pytest.mark.anyio
async def test_a_market_is_opened_once_and_found_by_every_later_start(
    session: DemoSession, tmp_path: Path
) -> None:
    """The note is of a request that another database knew."""
    note = tmp_path / SEED_NOTE
    note.write_text("9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a")
    market, said = await seeded(session, note)
    assert (market.slug, said) == (SEED_SLUG, "opening a market to begin with …\n")
    book: Any = await session.trading.get("/book", token_id=market.token_yes)
    assert (book["market"], book["bids"]) == (market.condition_id, [])
    sent = await creators_nonce(session)
    assert await seeded(session, note) == (market, "")
    assert await creators_nonce(session) == sent


@pytest.mark.anyio
async def test_a_start_that_was_killed_after_its_check_goes_on_from_there(
    session: DemoSession, tmp_path: Path
) -> None:
    note = tmp_path / SEED_NOTE
    client, request_id, sent = await begin(session, note)
    await client.confirm(request_id, sent)
    await client.finalize(request_id)
    nonce = await creators_nonce(session)
    market, _ = await seeded(session, note)
    assert (market.slug, note.read_text()) == (SEED_SLUG, request_id)
    assert await creators_nonce(session) == nonce + 1


@pytest.mark.anyio
async def test_a_start_that_was_killed_before_its_check_begins_anew_on_the_same_question(
    session: DemoSession, tmp_path: Path
) -> None:
    note = tmp_path / SEED_NOTE
    _, request_id, _ = await begin(session, note)
    market, _ = await seeded(session, note)
    assert note.read_text() != request_id
    found = await session.discovery.get("/markets")
    assert [each["slug"] for each in found] == [market.slug]


@pytest.mark.anyio
async def test_every_trader_of_the_sandbox_may_trade_at_once(session: DemoSession) -> None:
    await up._approve_traders(session)
    reader = Reader(session.rpc, session.deployment)
    traders = sandbox_accounts(AccountRole.TRADER, SANDBOX_CHAIN_ID)
    exchange = session.deployment.exchange
    units = [await reader.allowance_units(each.address, exchange) for each in traders]
    assert min(units) > 10**30

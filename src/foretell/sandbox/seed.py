"""The first state of a sandbox: traders that may trade at once, and one open market."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from foretell.chain.reader import Reader
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import ApiRefused
from foretell.sandbox.market_creation import MarketCreator, SilentNarrator, iso_time_in
from foretell.sandbox.ready import SeededMarket
from foretell.sandbox.session import SandboxSession, approval_calls
from foretell.sdk.http import HttpClient, wait_for
from foretell.sdk.payloads import NewMarket, binary_payload

SEED_SLUG: Final = "rain-within-a-year"
SEED_DAYS: Final = 365
SEED_NOTE: Final = "seed-request"
"""The file with the id of the request that creates the first market, for a start after a kill."""


async def approve_traders(session: SandboxSession) -> None:
    """Let the exchanges move the assets of the sandbox's traders, so that a bot can trade at once."""
    reader = Reader(session.rpc, session.deployment)
    calls = approval_calls(session.deployment)

    async def approve(trader: SetupCaller) -> None:
        if not await reader.allowance_units(trader.address, session.deployment.neg_risk_exchange):
            await trader.call_all(calls)

    traders = [each for each in session.ready.accounts if each.role == AccountRole.TRADER]
    await asyncio.gather(*(approve(session.caller(each.key)) for each in traders))


async def seed_market(
    session: SandboxSession, note: Path, when_created: Callable[[], None]
) -> SeededMarket:
    """Return the first market of the sandbox; create it through the public API if there is none."""
    found = await session.discovery.get("/markets", slug=SEED_SLUG)
    if not found:
        when_created()
        await _create(session, note)
        found = await session.discovery.get("/markets", slug=SEED_SLUG)
    token_yes, token_no = msgspec.json.decode(found[0]["clobTokenIds"], type=list[str])
    await _wait_for_book(session.trading, token_yes)
    return SeededMarket(found[0]["conditionId"], token_yes, token_no, found[0]["slug"])


def seed_draft(session: SandboxSession) -> NewMarket:
    """Return the first market as its creator drafts it."""
    return NewMarket(
        creator=session.caller(session.account(AccountRole.CREATOR)).address,
        title="Will it rain within a year?",
        slug=SEED_SLUG,
        question="Will it rain within a year?",
        ends_at=iso_time_in(session, SEED_DAYS),
    )


def stored_request_id(note: Path) -> str:
    """Return the id of the request that an earlier start began with, empty if there is none."""
    return note.read_text() if note.exists() else ""


async def _create(session: SandboxSession, note: Path) -> None:
    """Create the market, or continue the creation of a start that was killed."""
    creator = MarketCreator(session, session.account(AccountRole.CREATOR), SilentNarrator())
    request_id = stored_request_id(note)
    if request_id and await creator.resume(request_id):
        return
    await creator.create(binary_payload(seed_draft(session)), note.write_text)


async def _wait_for_book(trading: HttpClient, token_id: str) -> None:
    async def fetch_book() -> Any:
        try:
            return await trading.get("/book", token_id=token_id)
        except ApiRefused:
            return None

    await wait_for("the market's order book", fetch_book)

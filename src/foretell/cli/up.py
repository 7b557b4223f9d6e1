"""`foretell up`: the whole exchange on one machine, with a market to begin with."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from foretell.app.clock_and_ids import now_ms
from foretell.app.installation import Installation
from foretell.app.running import run_until_stopped, set_up_logs
from foretell.chain.reader import Reader
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.errors.command import ApiRefused
from foretell.domain.evm.transaction import ContractCall
from foretell.runtime.garbage_collection import settle_memory
from foretell.sandbox.demo.create_market import make_market, resume_market
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import approvals
from foretell.sandbox.ready import Ready, SeededMarket, describe, remove_ready, write_ready
from foretell.sdk.http import HttpClient, wait_for
from foretell.sdk.payloads import MarketDraft
from foretell.settings import Settings

SEED_SLUG: Final = "rain-within-a-year"
SEED_DAYS: Final = 365
SEED_NOTE: Final = "seed-request"
"""The file that remembers which request makes the first market, so that a killed start goes on."""
NOT_YET: Final = SeededMarket("", "", "", "")


def run_up(settings: Settings, console: Console) -> None:
    """Start everything, seed a market if there is none, say where it all is, and stay."""
    if not settings.is_sandbox:
        raise SandboxOnly(
            "foretell up", "a chain of yours: unset FORETELL_RPC_URL, or use foretell serve"
        )
    set_up_logs(settings)
    started_ms = now_ms()
    installation = Installation(settings)

    async def greet() -> None:
        assert installation.deployment is not None
        ready = describe(settings.base_url, _rpc_url(settings), installation.deployment, NOT_YET)
        async with DemoSession.open(ready, installation.deployment, Console(quiet=True)) as session:
            await _approve_traders(session)
            market = await _seed(session, console, settings.data / SEED_NOTE)
        ready = msgspec.structs.replace(ready, market=market)
        settle_memory()
        write_ready(settings.data, ready)
        _print_where(console, ready, settings, (now_ms() - started_ms) / 1000)

    installation.take_folder()
    remove_ready(settings.data)
    console.print("starting the chain, the contracts and every service …")
    run_until_stopped(installation, greet, lambda: remove_ready(settings.data))
    console.print(f"stopped; everything is kept in {settings.data}", markup=False)


def _rpc_url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.chain_port}"


async def _approve_traders(session: DemoSession) -> None:
    """Let the exchanges move what the sandbox's traders have, so that a bot trades at once."""
    reader = Reader(session.rpc, session.deployment)
    calls = [ContractCall(call.to, call.calldata) for call in approvals(session)]

    async def approve(trader: SetupCaller) -> None:
        if not await reader.allowance_units(trader.address, session.deployment.neg_risk_exchange):
            await trader.call_all(calls)

    traders = [each for each in session.ready.accounts if each.role == AccountRole.TRADER]
    await asyncio.gather(*(approve(session.caller(each.key)) for each in traders))


async def _seed(session: DemoSession, console: Console, note: Path) -> SeededMarket:
    """Return the market that the sandbox begins with, made through the public API if need be."""
    found = await session.discovery.get("/markets", slug=SEED_SLUG)
    if not found:
        console.print("opening a market to begin with …")
        await _open_market(session, note)
        found = await session.discovery.get("/markets", slug=SEED_SLUG)
    token_yes, token_no = msgspec.json.decode(found[0]["clobTokenIds"], type=list[str])
    await _wait_for_book(session.trading, token_yes)
    return SeededMarket(found[0]["conditionId"], token_yes, token_no, found[0]["slug"])


async def _open_market(session: DemoSession, note: Path) -> None:
    creator = session.account(AccountRole.CREATOR)
    begun = _noted(note)
    if begun and await resume_market(session, creator, begun):
        return
    await make_market(session, _wish(session), creator, note.write_text)


def _noted(note: Path) -> str:
    return note.read_text() if note.exists() else ""


def _wish(session: DemoSession) -> MarketDraft:
    ends_at = datetime.fromtimestamp(session.now_s(), UTC) + timedelta(days=SEED_DAYS)
    return MarketDraft(
        creator=session.caller(session.account(AccountRole.CREATOR)).address,
        title="Will it rain within a year?",
        slug=SEED_SLUG,
        question="Will it rain within a year?",
        ends_at=ends_at.isoformat().replace("+00:00", "Z"),
    )


async def _wait_for_book(trading: HttpClient, token_id: str) -> None:
    async def run_once() -> Any:
        try:
            return await trading.get("/book", token_id=token_id)
        except ApiRefused:
            return None

    await wait_for("the market's order book", run_once)


def _print_where(console: Console, ready: Ready, settings: Settings, seconds: float) -> None:
    table = Table.grid(padding=(0, 2))
    rows = (
        ("trading", ready.clob),
        ("streams", f"{ready.ws}/market and /user"),
        ("market creation", ready.worker),
        ("relayer", ready.relayer),
        ("data", ready.data),
        ("discovery", ready.discovery),
        ("chain (JSON-RPC)", f"{ready.rpc}, chain id {ready.chain_id}"),
        ("keys, contracts", str(settings.data / "ready.json")),
    )
    for name, where in rows:
        table.add_row(f"[bold]{name}[/]", where)
    console.print(Panel(table, title=f"Foretell runs ({seconds:.1f} s)", expand=False))
    console.print("try next, in another terminal:")
    option = "" if settings.data == Settings().data else f" --data {settings.data}"
    console.print(f"  {_command()} demo{option}", markup=False, soft_wrap=True)
    book = f"{ready.clob}/book?token_id={ready.market.token_yes}"
    console.print(f"  curl '{book}'", markup=False, soft_wrap=True)
    console.print("Ctrl-C stops it and keeps everything.")


def _command() -> str:
    """Return how this command was called, which is how another one may be."""
    return sys.argv[0] if Path(sys.argv[0]).name == "foretell" else "foretell"

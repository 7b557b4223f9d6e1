"""`foretell up`: a whole sandbox on one machine, with a first market."""

import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.app.installation import Installation
from foretell.app.running import run_until_stopped, set_up_logs
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.errors.command import MissingSetting
from foretell.runtime.garbage_collection import settle_memory
from foretell.sandbox.ready import NOT_SEEDED, Ready, describe, remove_ready, write_ready
from foretell.sandbox.seed import SEED_NOTE, approve_traders, seed_market
from foretell.sandbox.session import SandboxSession
from foretell.settings import Settings
from foretell.web.sandbox_token import kept_token


def run_up(settings: Settings, console: Console) -> None:
    """Start everything, seed a market if there is none, print the addresses, and run until stopped."""
    if not settings.is_sandbox:
        raise SandboxOnly(
            "foretell up", "your own chain", "unset FORETELL_RPC_URL, or use foretell serve"
        )
    if settings.shards and settings.is_embedded:
        raise MissingSetting(
            "database_url",
            f"engines in processes of their own, as with FORETELL_SHARDS={settings.shards}, need PostgreSQL",
        )
    set_up_logs(settings)
    started_ms = now_ms()
    installation = Installation(settings)

    async def greet() -> None:
        deployment = installation.deployment
        assert deployment is not None, "it was started"
        ready = describe(
            settings.base_url,
            settings.devchain_url,
            deployment,
            NOT_SEEDED,
            settings.l1_domain,
            kept_token(settings.data, new_key),
        )
        async with SandboxSession.open(ready, deployment) as session:
            await approve_traders(session)
            market = await seed_market(
                session,
                settings.data / SEED_NOTE,
                lambda: console.print("creating the first market …"),
            )
        ready = msgspec.structs.replace(ready, market=market)
        settle_memory()
        write_ready(settings.data, ready)
        print_addresses(console, ready, settings, (now_ms() - started_ms) / 1000)

    installation.take_folder()
    remove_ready(settings.data)
    console.print("starting the chain, the contracts and the APIs …")
    run_until_stopped(installation, greet, lambda: remove_ready(settings.data))
    console.print(f"stopped; everything is kept in {settings.data}", markup=False)


def print_addresses(console: Console, ready: Ready, settings: Settings, seconds: float) -> None:
    """Print the addresses of a sandbox that took this many seconds to start, and commands to try."""
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
    for name, address in rows:
        table.add_row(f"[bold]{name}[/]", address)
    console.print("the web app, with the sandbox's wallets:")
    console.print(f"  {ready.web}", markup=False, soft_wrap=True)
    console.print(Panel(table, title=f"Foretell runs ({seconds:.1f} s)", expand=False))
    console.print("try next, in another terminal:")
    option = "" if settings.data == Settings().data else f" --data {settings.data}"
    console.print(f"  {_command()} demo{option}", markup=False, soft_wrap=True)
    book = f"{ready.clob}/book?token_id={ready.market.token_yes}"
    console.print(f"  curl '{book}'", markup=False, soft_wrap=True)
    console.print("Ctrl-C stops it and keeps everything.")


def _command() -> str:
    """Return the command as it was called, so that the next one can be called the same way."""
    return sys.argv[0] if Path(sys.argv[0]).name == "foretell" else "foretell"

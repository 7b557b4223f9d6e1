"""`foretell doctor`: checks of the machine, the packages and a running installation."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from foretell.app.keys import open_keys
from foretell.app.roles import KeyName
from foretell.chain.artifacts import CONDITIONAL_TOKENS, npm_artifact, own_artifact
from foretell.chain.devchain import find_anvil
from foretell.chain.rpc import CHAIN_ID, Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.chain.unknown_nonces import unknown_nonces
from foretell.domain.errors.command import NotRunning, ProblemsFound
from foretell.domain.errors.families import ForetellError
from foretell.domain.values.credentials import L1_MESSAGE
from foretell.domain.values.eip712 import address_of_key, recover_signer, sign_digest
from foretell.domain.values.hexadecimal import Address, checksum_address, keccak256
from foretell.runtime.folders import disk_room
from foretell.runtime.interpreter import running_interpreter
from foretell.sandbox.ready import Ready, read_ready
from foretell.sdk.http import HttpClient
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox

PYTHON_MIN: Final = (3, 11)
FREE_BYTES_MIN: Final = 1024**3


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    is_well: bool
    seen: str


def run_doctor(settings: Settings, console: Console, free_bytes_min: int = FREE_BYTES_MIN) -> None:
    """Print every finding; raise when a check failed."""
    findings = [
        *_machine(settings, free_bytes_min),
        *uvloop.run(_operators(settings)),
        *uvloop.run(_running(settings)),
    ]
    table = Table("", "what", "seen")
    for finding in findings:
        sign = "[green]✓[/]" if finding.is_well else "[red]✗[/]"
        table.add_row(sign, finding.what, escape(finding.seen))
    console.print(table)
    ailing = [finding.what for finding in findings if not finding.is_well]
    if ailing:
        raise ProblemsFound(ailing)


def _machine(settings: Settings, free_bytes_min: int) -> Iterator[Finding]:
    yield Finding(
        "Python", sys.version_info >= PYTHON_MIN, f"{running_interpreter().words()}; 3.11 or newer"
    )
    yield Finding("Foretell", True, version("foretell"))  # noqa: FBT003 - always well
    yield _checked("signatures", _sign_and_recover)
    yield _checked("anvil", lambda: str(find_anvil(settings.anvil, settings.npm_folder)))
    yield _checked(
        "own contracts", lambda: f"{len(own_artifact('Exchange').bytecode)} bytes of Exchange"
    )
    yield _checked(
        "contracts from npm",
        lambda: f"{len(npm_artifact(settings.npm_folder, CONDITIONAL_TOKENS).bytecode)} bytes",
    )
    folder, _, free = disk_room(settings.data.absolute())
    yield Finding("disk", free >= free_bytes_min, f"{free // 1024**2} MB free at {folder}")


def _sign_and_recover() -> str:
    """Sign and recover with a fixed key, and return how that went."""
    key, digest = keccak256(b"foretell doctor"), keccak256(L1_MESSAGE.encode())
    recovered = recover_signer(digest, sign_digest(digest, key))
    if recovered != address_of_key(key):
        raise ProblemsFound(["recovery of signers"])
    return "coincurve signs and recovers"


def _checked(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what, is_well=True, seen=check())
    except (ForetellError, OSError) as error:
        return Finding(what, is_well=False, seen=str(error))


async def _operators(settings: Settings) -> list[Finding]:
    """Return the balance of every account that settles, where the operator set their keys."""
    if settings.rpc_url is None or settings.operator_key is None:
        return []
    rpc_url = settings.rpc_url.get_secret_value()
    findings = [await _awaited("node", lambda: _node(rpc_url))]
    if not findings[0].is_well:
        return findings
    try:
        keys = open_keys(settings, frozenset({KeyName.OPERATOR}))
        accounts = [address_of_key(key) for key in (keys.operator, *keys.further_operators)]
        async with Rpc(rpc_url) as rpc:
            answers = await rpc.batch([("eth_getBalance", [each, "latest"]) for each in accounts])
            unknown = await _unknown_txs(settings, rpc, accounts)
    except ForetellError as error:
        return [*findings, Finding("operators", is_well=False, seen=error.message)]
    balances = [quantity_of(answer, "eth_getBalance") for answer in answers]
    findings += [
        Finding("operator", balance > 0, f"{checksum_address(account)} has {balance} wei")
        for account, balance in zip(accounts, balances, strict=True)
    ]
    return findings + unknown


async def _node(rpc_url: str) -> str:
    """Return the chain and the block of the operator's node; its address is left out, because it may have a key in it."""
    async with Rpc(rpc_url) as rpc:
        chain_id = quantity_of(await rpc.call(CHAIN_ID), CHAIN_ID)
        block = quantity_of(await rpc.call("eth_blockNumber"), "eth_blockNumber")
    return f"chain {chain_id}, at block {block}"


async def _unknown_txs(settings: Settings, rpc: Rpc, accounts: Sequence[Address]) -> list[Finding]:
    """Return the accounts of which the node has transactions that the database lacks: settlement waits."""
    if settings.database_url is None and not settings.sqlite_file.is_file():
        return []
    async with Database(settings.database) as database:
        outbox = TxOutbox(database, SETTLEMENT)
        counts = [len(await unknown_nonces(rpc, outbox, each)) for each in accounts]
    return [
        Finding(
            "settlement waits",
            is_well=False,
            seen=f"{checksum_address(account)}, transactions in no block that the database lacks: {count}",
        )
        for account, count in zip(accounts, counts, strict=True)
        if count
    ]


async def _running(settings: Settings) -> list[Finding]:
    try:
        ready = read_ready(settings.data)
    except NotRunning:
        return [Finding("installation", is_well=True, seen=f"none runs on {settings.data}")]
    urls = {
        "trading": ready.clob,
        "market creation": ready.worker,
        "relayer": ready.relayer,
        "data": ready.data,
        "discovery": ready.discovery,
    }
    findings = [await _awaited(name, lambda url=url: _status(url)) for name, url in urls.items()]  # type: ignore[misc]
    findings.append(await _awaited("chain", lambda: _head(ready)))
    return findings


async def _status(url: str) -> str:
    async with HttpClient(url) as client:
        path = "/status" if url.endswith("/discovery") else "/"
        return f"{url} answers {await client.get_text(path)}"


async def _head(ready: Ready) -> str:
    async with Rpc(ready.rpc) as rpc:
        number = quantity_of(await rpc.call("eth_blockNumber"), "eth_blockNumber")
    return f"{ready.rpc} is at block {number}"


async def _awaited(what: str, check: Callable[[], Awaitable[str]]) -> Finding:
    try:
        return Finding(what, is_well=True, seen=await check())
    except ForetellError as error:
        return Finding(what, is_well=False, seen=error.message)

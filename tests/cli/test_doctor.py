import asyncio
import io
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.rigs.in_process import installed, sandbox_settings
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_key

from foretell.bench.rigs.ports import free_port
from foretell.bench.rigs.world import make_world
from foretell.cli import doctor
from foretell.cli.doctor import run_doctor
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import ProblemsFound
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import checksum_address
from foretell.runtime.interpreter import running_interpreter
from foretell.sandbox.ready import SeededMarket, describe, write_ready
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade

pytestmark = pytest.mark.anyio

OTHER_ADDRESS = "0x" + "00" * 20


def examined(settings: Settings, **options: int) -> tuple[str, str]:
    """Return what the doctor prints, and its refusal."""
    console = Console(file=io.StringIO(), width=200)
    ailing = ""
    try:
        run_doctor(settings, console, **options)
    except ProblemsFound as error:
        ailing = error.message
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), ailing


def write_ready_file(settings: Settings, rpc_url: str) -> None:
    """Write the file of a running installation."""
    settings.data.mkdir(exist_ok=True)
    deployment = make_world(a_key("doctor")).deployment
    market = SeededMarket("", "", "", "")
    write_ready(settings.data, describe(settings.base_url, rpc_url, deployment, market))


def test_a_machine_with_everything_passes(settings: Settings) -> None:
    printed, ailing = examined(settings)
    assert (ailing, printed.count("✗")) == ("", 0)
    assert f"none runs on {settings.data}" in printed
    assert f"Foretell │ {version('foretell')}" in re.sub(" +", " ", printed)
    assert f"{running_interpreter().words()}; 3.11 or newer" in printed


@pytest.mark.parametrize(
    ("field", "what"), [("anvil", "anvil"), ("npm_folder", "anvil, contracts from npm")]
)
def test_a_missing_program_is_reported_with_the_folder_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, what: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    nowhere = tmp_path / "[nowhere]"
    printed, ailing = examined(sandbox_settings(tmp_path, **{field: nowhere}))
    assert ailing == f"problems found: {what}"
    assert f"it was not found in {nowhere}" in printed


def test_a_full_disk_is_reported(settings: Settings) -> None:
    assert examined(settings, free_bytes_min=2**80)[1] == "problems found: disk"


def test_a_failed_recovery_of_signers_is_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "recover_signer", lambda *_: OTHER_ADDRESS)
    printed, ailing = examined(settings)
    assert ailing == "problems found: signatures"
    assert "problems found: recovery of signers" in printed


def test_a_folder_that_does_not_exist_yet_is_measured_at_its_parent(tmp_path: Path) -> None:
    printed, ailing = examined(sandbox_settings(tmp_path, data=tmp_path / "a" / "b" / "c"))
    assert (ailing, f"MB free at {tmp_path}" in printed) == ("", True)


def test_a_killed_installation_is_reported_api_by_api(settings: Settings) -> None:
    write_ready_file(settings, f"http://127.0.0.1:{free_port()}")
    printed, ailing = examined(settings)
    assert ailing == "problems found: trading, market creation, relayer, data, discovery, chain"
    assert printed.count("does not answer (ConnectError)") == 5


async def test_a_running_installation_is_reported_api_by_api(settings: Settings) -> None:
    async with installed(settings):
        write_ready_file(settings, f"http://127.0.0.1:{settings.chain_port}")
        printed, ailing = await asyncio.to_thread(examined, settings)
    assert ailing == ""
    names = ("trading", "market creation", "relayer", "data", "discovery", "chain")
    assert [name for name in names if f"│ {name} " not in printed] == []
    assert "is at block" in printed


async def test_the_coin_of_every_account_that_settles_is_shown(
    fresh_sandbox: Sandbox, tmp_path: Path
) -> None:
    rich, poor = a_key("rich"), a_key("poor")
    await fresh_sandbox.rpc.send("anvil_setBalance", address_of_key(rich), "0x7")
    settings = sandbox_settings(
        tmp_path,
        rpc_url=SecretStr(fresh_sandbox.rpc_url),
        operator_key=SecretStr(rich.hex()),
        operator_keys=SecretStr(poor.hex()),
    )
    printed, ailing = await asyncio.to_thread(examined, settings)
    assert "│ node " in printed
    assert f"chain {SANDBOX_CHAIN_ID}, at block" in printed
    assert f"{checksum_address(address_of_key(rich))} has 7 wei" in printed
    assert f"{checksum_address(address_of_key(poor))} has 0 wei" in printed
    assert ailing == "problems found: operator"


async def test_a_node_that_does_not_answer_is_reported_without_its_address(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/v3/secret"
    printed, ailing = await asyncio.to_thread(
        examined,
        sandbox_settings(
            tmp_path, rpc_url=SecretStr(url), operator_key=SecretStr(a_key("rich").hex())
        ),
    )
    assert ailing == "problems found: node"
    assert "secret" not in printed


async def automine(sandbox: Sandbox, *, is_on: bool) -> None:
    await sandbox.rpc.send("evm_setAutomine", is_on)


async def test_transactions_that_the_database_lacks_are_shown(
    fresh_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Settlement waits for them after a restored copy."""
    key, node = a_key("rich"), fresh_sandbox.rpc
    await node.send("anvil_setBalance", address_of_key(key), hex(10**20))
    await node.send("anvil_impersonateAccount", address_of_key(key))
    settings = sandbox_settings(
        tmp_path, rpc_url=SecretStr(fresh_sandbox.rpc_url), operator_key=SecretStr(key.hex())
    )
    settings.data.mkdir(parents=True, exist_ok=True)
    async with Database(settings.database) as database:
        await upgrade(database)
    await automine(fresh_sandbox, is_on=False)
    try:
        call = {"from": address_of_key(key), "to": address_of_key(key)}
        await node.send("eth_sendTransaction", call)
        printed, ailing = await asyncio.to_thread(examined, settings)
    finally:
        await automine(fresh_sandbox, is_on=True)
    assert "transactions in no block that the database lacks: 1" in " ".join(printed.split())
    assert ailing == "problems found: settlement waits"

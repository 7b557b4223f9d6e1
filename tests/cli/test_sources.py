"""The commands that read a node and a database find those of the data folder, and name those that fail."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from tests.cli.test_solvency import index
from tests.rigs.in_process import Call
from tests.rigs.postgres import PostgresServer
from tests.rigs.sandbox import Sandbox

from foretell.app.origin import FILE, Origin, fetch_chain
from foretell.bench.rigs.ports import free_port
from foretell.chain.deploy import store_deployment
from foretell.cli.solvency import run_solvency
from foretell.cli.sources import node_address
from foretell.cli.verification import run_verify_data
from foretell.domain.errors.sources import ForeignNode, NodeUnavailable
from foretell.sandbox.ready import NOT_SEEDED, describe, write_ready
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.identity import CHAIN, record_fact

OTHER_CHAIN = "chain 80002 with first block 0x" + "ab" * 32 + " and exchange 0x" + "cd" * 20

Command = Callable[[Settings, Console], None]
both_commands = pytest.mark.parametrize("command", [run_solvency, run_verify_data])


async def printed(command: Command, settings: Settings) -> str:
    """Return what a command prints; it runs an event loop of its own."""
    with io.StringIO() as output:
        await asyncio.to_thread(command, settings, Console(file=output, width=200))
        return output.getvalue()


def announce(folder: Path, sandbox: Sandbox, rpc_url: str) -> None:
    """Write the data folder of a sandbox that runs with its chain at a URL."""
    folder.mkdir(exist_ok=True)
    store_deployment(folder / "deployment.json", sandbox.deployment)
    ready = describe("http://127.0.0.1:1", rpc_url, sandbox.deployment, NOT_SEEDED)
    write_ready(folder, ready)


@pytest.mark.anyio
@both_commands
async def test_the_chain_of_a_sandbox_with_a_chain_port_is_found_by_its_data_folder(
    fresh_sandbox: Sandbox, tmp_path: Path, command: Command
) -> None:
    settings = Settings(data=tmp_path / "data")
    announce(settings.data, fresh_sandbox, fresh_sandbox.rpc_url)
    await fresh_sandbox.split(fresh_sandbox.trader(), await fresh_sandbox.ask(), 3_000_000)
    await index(fresh_sandbox, settings)
    async with Database(settings.database) as database, database.writing() as tx:
        chain = await fetch_chain(fresh_sandbox.reader, fresh_sandbox.deployment)
        assert chain is not None
        await record_fact(tx, CHAIN, chain)
    assert "block hash 0x" in await printed(command, settings)


def test_a_setting_that_is_given_names_the_node(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data=tmp_path)
    default = f"by default: no sandbox runs on {tmp_path}, and foretell up starts it"
    assert node_address(settings) == ("http://127.0.0.1:8545", default)
    announce(tmp_path, sandbox, "http://127.0.0.1:8600")
    ready = f"by {tmp_path / 'ready.json'}"
    assert node_address(settings) == ("http://127.0.0.1:8600", ready)
    monkeypatch.setenv("FORETELL_CHAIN_PORT", "8545")
    named = ("http://127.0.0.1:8545", "by FORETELL_CHAIN_PORT")
    assert node_address(Settings(data=tmp_path)) == named
    monkeypatch.setenv("FORETELL_RPC_URL", "https://node.example/key")
    named = ("https://node.example/key", "by FORETELL_RPC_URL")
    assert node_address(Settings(data=tmp_path)) == named


@pytest.mark.anyio
@both_commands
async def test_a_node_that_does_not_answer_is_named_without_its_keys(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    folder, port = tmp_path / "data", free_port()
    announce(folder, sandbox, "http://127.0.0.1:8600")
    await index(sandbox, Settings(data=folder))
    monkeypatch.setenv("FORETELL_RPC_URL", f"http://me:hunter2@127.0.0.1:{port}/v3/0a1b2c?key=3d4e")
    with pytest.raises(NodeUnavailable) as refused:
        await printed(command, Settings(data=folder))
    assert refused.value.message == (
        "the node gave no valid response to eth_getBlockByNumber: ClientConnectorError;"
        f" the node is http://127.0.0.1:{port} (by FORETELL_RPC_URL); FORETELL_RPC_URL names another"
    )


@pytest.mark.anyio
@both_commands
@pytest.mark.parametrize("noted_in", ["the database", "the folder"])
async def test_the_chain_of_another_sandbox_is_refused_before_it_is_read(
    sandbox: Sandbox, tmp_path: Path, command: Command, noted_in: str
) -> None:
    settings = Settings(data=tmp_path / "data")
    announce(settings.data, sandbox, sandbox.rpc_url)
    await index(sandbox, settings)
    noted = {"the database": OTHER_CHAIN, "the folder": ""}[noted_in]
    async with Database(settings.database) as database, database.writing() as tx:
        await record_fact(tx, CHAIN, noted)
    (settings.data / FILE).write_bytes(msgspec.json.encode(Origin(chain=OTHER_CHAIN)))
    with pytest.raises(ForeignNode) as refused:
        await printed(command, settings)
    assert (
        f"the node {sandbox.rpc_url} (by {settings.data / 'ready.json'}) serves chain 80002 with"
        in (refused.value.message)
    )
    assert f"the database {settings.sqlite_file} (of the data folder) is of {OTHER_CHAIN}" in (
        refused.value.message
    )


USERS = (
    ("verify", "data"),
    ("solvency",),
    ("wallet", "gas"),
    ("wallet", "barred"),
    ("fee-shares",),
    ("builder-fees", "0x" + "ab" * 32),
    ("journal", "rebuild"),
)


@pytest.mark.parametrize("arguments", USERS, ids=" ".join)
def test_a_database_that_does_not_exist_is_named_and_not_made(
    call: Call, sandbox: Sandbox, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    announce(tmp_path / "data", sandbox, sandbox.rpc_url)
    called = call(*arguments, "--data", str(tmp_path / "data"))
    file = tmp_path / "data" / "foretell.db"
    assert called.code == 1
    assert called.err == (
        f"error: the database does not exist; the database is {file} (of the data folder);"
        " FORETELL_DATABASE_URL names another\n"
    )
    assert not file.exists()


@pytest.mark.parametrize("arguments", USERS, ids=" ".join)
def test_a_database_that_does_not_answer_is_named_without_its_password(
    call: Call,
    sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    announce(tmp_path / "data", sandbox, sandbox.rpc_url)
    place = f"127.0.0.1:{free_port()}/rain"
    url = f"postgresql+asyncpg://me:hunter2@{place}?password=hunter3"
    monkeypatch.setenv("FORETELL_DATABASE_URL", url)
    called = call(*arguments, "--data", str(tmp_path / "data"))
    assert called.code == 1
    assert (
        "error: the database is unavailable: ConnectionRefusedError; the database is" in called.err
    )
    assert f"postgresql+asyncpg://me:***@{place} (by FORETELL_DATABASE_URL);" in called.err
    assert called.err.count("\n") == 1


def test_a_postgresql_database_that_does_not_exist_is_named(
    call: Call, tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = postgres.database_url.replace("foretell_", "nothing_of_")
    monkeypatch.setenv("FORETELL_DATABASE_URL", wrong)
    called = call("wallet", "gas", "--data", str(tmp_path))
    assert called.code == 1
    assert "the database is unavailable: " in called.err
    assert "nothing_of_" in called.err
    assert called.err.endswith("(by FORETELL_DATABASE_URL); FORETELL_DATABASE_URL names another\n")

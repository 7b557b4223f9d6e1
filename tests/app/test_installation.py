import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.app.rig import anvil_pid, get, processes_left, processes_on
from tests.chain.chains import started, url_of
from tests.rigs.applications import serving
from tests.rigs.in_process import installed, sandbox_settings
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_key

from foretell.app.installation import Installation
from foretell.app.roles import Role
from foretell.bench.rigs.ports import free_port, is_free
from foretell.chain.deploy import store_deployment
from foretell.chain.devchain import DevChainOptions
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import ChainUnavailable, InvalidDeployment, WrongChain
from foretell.domain.errors.command import ComponentStopped, MissingKey, PortTaken
from foretell.domain.errors.exchange import EngineStopped
from foretell.domain.errors.storage import FolderInUse
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.runtime.child_processes import RestartBackoff
from foretell.sdk.http import wait_for
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.index.blocks import load_last_block

pytestmark = pytest.mark.anyio

PAGE = "https://page.example"
PREFLIGHT = {"access-control-request-method": "POST"}
HEALTH_PATHS = (
    "/clob/ok",
    "/create-market/",
    "/relayer/",
    "/data/",
    "/discovery/status",
    "/metrics",
)
WITHIN_S = 180.0


class Broken(Exception):
    """The error that a test raises in a part."""


@pytest.fixture
async def running(settings: Settings) -> AsyncIterator[Installation]:
    async with installed(settings) as running:
        yield running


def production(folder: Path, rpc_url: str, **given: Any) -> Settings:
    """Return the settings of an operator with a node, keys and a deployment of its own."""
    names = ("master_key", "operator_key", "registrar_key", "relayer_key", "storage_key")
    keys = {name: SecretStr(a_key(name).hex()) for name in names}
    return sandbox_settings(folder, **{"rpc_url": SecretStr(rpc_url), **keys, **given})


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; nothing announces it."""
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


async def ended(running: Installation) -> BaseException:
    """Return what has ended an installation."""
    with pytest.raises(ExceptionGroup) as group:
        await asyncio.wait_for(running.wait(), WITHIN_S)
    (cause,) = group.value.exceptions
    return cause


async def test_every_api_answers_once_it_is_started(
    running: Installation, settings: Settings
) -> None:
    statuses = {path: (await get(settings, path)).status_code for path in HEALTH_PATHS}
    assert statuses == dict.fromkeys(HEALTH_PATHS, 200)
    assert running.deployment is not None
    assert (await get(settings, "/")).json()["clob"] == f"{settings.base_url}/clob"
    async with httpx.AsyncClient(base_url=settings.base_url, trust_env=False, timeout=60) as page:
        answers = [
            await page.get("/clob/book", params={"token_id": "1"}, headers={"origin": PAGE}),
            await page.options("/relayer/submit", headers={"origin": PAGE, **PREFLIGHT}),
        ]
    assert [answer.status_code for answer in answers] == [404, 204]
    assert {answer.headers["access-control-allow-origin"] for answer in answers} == {"*"}


@pytest.mark.case("A-07")
async def test_until_it_has_started_every_api_says_that_it_is_starting(settings: Settings) -> None:
    running = Installation(settings)
    starting = asyncio.create_task(running.start())
    try:
        async with asyncio.timeout(WITHIN_S):
            while is_free(settings.port):  # noqa: ASYNC110 - the server publishes no event
                await asyncio.sleep(0)
        answers = {path: await get(settings, path) for path in HEALTH_PATHS}
        assert not starting.done()
        await starting
        assert (await get(settings, "/clob/ok")).status_code == 200
    finally:
        starting.cancel()
        await running.stop()
    assert {path: answer.status_code for path, answer in answers.items()} == {
        **dict.fromkeys(HEALTH_PATHS, 503),
        "/clob/ok": 425,
        "/metrics": 200,
    }


async def test_a_process_with_one_api_serves_it_at_the_root(settings: Settings) -> None:
    async with installed(settings, [Role.DATA]):
        assert (await get(settings, "/")).json() == {"data": "OK"}
        assert (await get(settings, "/data/")).status_code == 404


async def test_a_process_without_an_api_does_not_listen(settings: Settings) -> None:
    async with installed(settings, [Role.INDEXER, Role.SETTLEMENT]) as running:
        assert is_free(settings.port)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.1)


async def test_stopping_leaves_no_process_and_frees_folder_and_ports(settings: Settings) -> None:
    async with installed(settings):
        assert len(processes_on(settings)) > 1
        assert not is_free(settings.port)
    assert processes_left(settings) == []
    assert is_free(settings.port)
    assert is_free(settings.chain_port)
    unlock_folder(lock_folder(settings.data))


async def test_stopping_twice_is_stopping_once(settings: Settings) -> None:
    async with installed(settings) as running:
        await running.stop()
        assert processes_left(settings) == []


async def test_the_next_start_continues_with_the_same_contracts_and_keys(
    settings: Settings,
) -> None:
    async with installed(settings) as first:
        made = first.deployment, (settings.data / "master.key").read_bytes()
    async with installed(settings) as second:
        assert (second.deployment, (settings.data / "master.key").read_bytes()) == made


@pytest.mark.usefixtures("running")
async def test_a_folder_belongs_to_one_installation(settings: Settings, tmp_path: Path) -> None:
    second = Installation(sandbox_settings(tmp_path))
    with pytest.raises(FolderInUse, match=rf"data \(process {os.getpid()}\); stop it"):
        await second.start()
    assert (await get(settings, "/clob/ok")).status_code == 200


async def test_a_folder_that_was_taken_beforehand_is_started_in(settings: Settings) -> None:
    taken = Installation(settings, [Role.INDEXER])
    taken.take_folder()
    with pytest.raises(FolderInUse):
        lock_folder(settings.data)
    await taken.start()
    await taken.stop()
    unlock_folder(lock_folder(settings.data))


@pytest.mark.parametrize(
    ("field", "setting"), [("port", "FORETELL_PORT"), ("chain_port", "FORETELL_CHAIN_PORT")]
)
async def test_a_port_of_another_program_is_refused_and_nothing_is_left(
    tmp_path: Path, field: str, setting: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = sandbox_settings(tmp_path, **{field: other.getsockname()[1]})
        with pytest.raises(PortTaken, match=f"another with {setting}$"):
            await Installation(settings).start()
    assert processes_left(settings) == []
    unlock_folder(lock_folder(settings.data))


async def test_a_start_that_is_canceled_leaves_nothing(settings: Settings) -> None:
    starting = asyncio.create_task(Installation(settings).start())
    async with asyncio.timeout(WITHIN_S):
        while not (settings.data / "chain" / "anvil.pid").exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert processes_left(settings) == []
    unlock_folder(lock_folder(settings.data))


async def test_a_part_that_fails_stops_everything_and_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def fail_later(_: object) -> None:
        await gate.wait()
        raise Broken

    monkeypatch.setattr("foretell.relayer.worker.run", fail_later)
    async with installed(settings) as running:
        with capture_logs() as logs:
            gate.set()
            assert isinstance(await ended(running), Broken)
    assert [each["part"] for each in logs if each["event"] == "component failed"] == ["relayer"]


async def test_a_journal_that_fails_stops_everything(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    async with installed(settings) as running:
        monkeypatch.setattr("foretell.journal.files.tail.os.fdatasync", fail)
        assert running.deployment is not None
        async with Rpc(f"http://127.0.0.1:{settings.chain_port}") as rpc:
            await rpc.send("evm_mine")
        assert isinstance(await ended(running), EngineStopped)


async def test_a_server_that_ends_by_itself_stops_everything(
    running: Installation, settings: Settings
) -> None:
    assert running.api is not None
    running.api.server.limit_max_requests = 1
    assert (await get(settings, "/")).status_code == 200
    assert isinstance(await ended(running), ComponentStopped)


async def test_a_chain_that_ends_is_started_again_with_its_state(settings: Settings) -> None:
    async with installed(settings, chain_restarts=RestartBackoff(first_s=0.05)) as running:
        assert running.deployment is not None
        exchange, before = running.deployment.exchange, anvil_pid(settings)
        with capture_logs() as logs:
            os.kill(before, signal.SIGTERM)

            async def fetch_code() -> str | None:
                try:
                    code: str = await rpc.call("eth_getCode", exchange, "latest")
                    return code if anvil_pid(settings) != before else None
                except (ChainUnavailable, FileNotFoundError, ValueError):
                    return None  # it is down, or is just writing its id

            async with Rpc(f"http://127.0.0.1:{settings.chain_port}") as rpc:
                assert len(await wait_for("the chain", fetch_code, WITHIN_S)) > 2
        assert (await get(settings, "/clob/ok")).status_code == 200
    ended = [each for each in logs if each["event"] == "process ended and is restarted"]
    assert [each["process"] for each in ended] == ["chain"]


async def test_an_operators_installation_runs_on_the_node_that_is_named(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    settings = production(tmp_path, sandbox.rpc_url)
    store_deployment(settings.deployment_file, sandbox.deployment)
    async with installed(settings):
        statuses = {path: (await get(settings, path)).status_code for path in HEALTH_PATHS}
        assert not (settings.data / "chain").exists()
    assert statuses == dict.fromkeys(HEALTH_PATHS, 200)


async def test_an_operators_api_starts_though_its_node_does_not_answer_yet(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    settings = production(tmp_path, "http://127.0.0.1:1")
    store_deployment(settings.deployment_file, sandbox.deployment)
    async with installed(settings, [Role.DISCOVERY]):
        assert (await get(settings, "/status")).text == "OK"


async def test_a_missing_deployment_is_refused_with_the_command_that_makes_one(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    settings = production(tmp_path, sandbox.rpc_url)
    with pytest.raises(
        InvalidDeployment, match=r"data/deployment.json does not exist; run foretell"
    ):
        await Installation(settings).start()


@pytest.mark.case("J-03")
@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"is_complete": False}, "it is incomplete"),
        ({"chain_id": 5}, "for chain 5, and chain 80002 is required"),
    ],
)
async def test_a_deployment_that_is_unfit_is_refused(
    sandbox: Sandbox, tmp_path: Path, changed: dict[str, Any], cause: str
) -> None:
    settings = production(tmp_path, sandbox.rpc_url)
    store_deployment(settings.deployment_file, replace(sandbox.deployment, **changed))
    with pytest.raises(InvalidDeployment, match=cause):
        await Installation(settings).start()


async def test_a_malformed_deployment_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    settings = production(tmp_path, sandbox.rpc_url)
    settings.data.mkdir()
    settings.deployment_file.write_text("{}")
    with pytest.raises(InvalidDeployment, match="missing required field"):
        await Installation(settings).start()


@pytest.mark.case("J-03")
async def test_a_node_of_another_chain_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    settings = production(tmp_path, sandbox.rpc_url, chain_id=137)
    store_deployment(settings.deployment_file, replace(sandbox.deployment, chain_id=137))
    with pytest.raises(WrongChain, match="serves chain 80002, and chain 137 is required"):
        await Installation(settings).start()


async def test_a_node_of_another_chain_that_answers_after_the_start_is_not_indexed(
    sandbox: Sandbox, devchain_options: DevChainOptions, tmp_path: Path
) -> None:
    foreign = replace(devchain_options, folder=tmp_path / "chain", port=free_port(), chain_id=137)
    settings = production(tmp_path, url_of(foreign))
    store_deployment(settings.deployment_file, replace(sandbox.deployment, start_block=0))
    with capture_logs() as logs:
        async with installed(settings, [Role.INDEXER]), started(foreign):
            await until(lambda: any("serves chain 137" in str(line.get("cause")) for line in logs))
            async with Database(settings.database) as database, database.reading() as tx:
                assert await load_last_block(tx) is None


async def test_attack_l1_a_sandboxs_contracts_are_used_on_a_dev_chain_only(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Their keys are public; chain 80002 is also that of a public network."""

    async def node(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        request = json.loads((await receive())["body"])
        result = {"eth_chainId": "0x13882", "web3_clientVersion": "Geth/v1.15.0"}[request["method"]]
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with serving(node) as host:
        settings = production(tmp_path, f"http://{host}")
        store_deployment(settings.deployment_file, sandbox.deployment)
        with pytest.raises(InvalidDeployment, match="whose keys are public"):
            await Installation(settings).start()


async def test_a_missing_key_is_refused_before_the_node_is_asked(
    tmp_path: Path,
) -> None:
    settings = production(tmp_path, "http://127.0.0.1:1", relayer_key=None)
    with pytest.raises(MissingKey, match="FORETELL_RELAYER_KEY"):
        await Installation(settings).start()
    unlock_folder(lock_folder(settings.data))

"""Fixtures of the chain adapter's tests: a clock, a faulty node, and an outbox."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.chain.chains import started, url_of
from tests.chain.sending import OPTIONS, SPENDER, Approving, MakeSender
from tests.conftest import NPM_FOLDER
from tests.rigs.chain_snapshots import take_back
from tests.rigs.clock import Clock
from tests.rigs.fault_proxy import FaultProxy, proxying
from tests.rigs.sandbox import Sandbox

from foretell.bench.rigs.ports import free_port
from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.devchain import DevChainOptions
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.plan import sandbox_plan
from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.contracts.calldata import Approve
from foretell.domain.evm.transaction import OutgoingTx
from foretell.store.database import Database
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def proxy(fresh_sandbox: Sandbox) -> AsyncIterator[FaultProxy]:
    async with proxying(fresh_sandbox.rpc_url) as proxy:
        yield proxy


@pytest.fixture
async def faulty_rpc(proxy: FaultProxy) -> AsyncIterator[Rpc]:
    """A connection to the sandbox's node through the proxy."""
    async with Rpc(proxy.url, timeout_s=60) as rpc:
        yield rpc


@pytest.fixture
async def database(empty_database: Path, tmp_path: Path) -> AsyncIterator[Database]:
    path = tmp_path / "foretell.db"
    shutil.copyfile(empty_database, path)
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        yield database


@pytest.fixture
def outbox(database: Database) -> TxOutbox:
    return TxOutbox(database, SETTLEMENT)


@pytest.fixture
async def still_sandbox(fresh_sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """The sandbox, mining only on demand."""
    await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - as the protocol has it
    yield fresh_sandbox
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - as the protocol has it


@pytest.fixture
def make_sender(
    fresh_sandbox: Sandbox, faulty_rpc: Rpc, outbox: TxOutbox, clock: Clock
) -> MakeSender:
    """Return a factory of the first trader's senders, each like a new process on the same rows."""

    def make(options: SenderOptions = OPTIONS, outbox: TxOutbox = outbox) -> Sender:
        key = fresh_sandbox.trader().private_key
        return Sender(faulty_rpc, key, outbox, options, clock.now_ms)

    return make


@pytest.fixture
def sender(make_sender: MakeSender) -> Sender:
    return make_sender()


@pytest.fixture
def approving(sandbox: Sandbox) -> Approving:
    """Return a factory of transactions that approve some of the first trader's collateral."""

    def make(tx_id: str = "approve-1", units: int = 7, gas: int | None = None) -> OutgoingTx:
        calldata = Approve(SPENDER, units).encode()
        return OutgoingTx(tx_id, sandbox.deployment.collateral, calldata, gas)

    return make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a deployment."""
    return tmp_path / "data" / "deployment.json"


@pytest.fixture(scope="module")
def bare_options(
    devchain_options: DevChainOptions, tmp_path_factory: pytest.TempPathFactory
) -> DevChainOptions:
    folder = tmp_path_factory.mktemp("bare")
    return replace(devchain_options, folder=folder, port=free_port())


@pytest.fixture(scope="module")
async def bare_chain(bare_options: DevChainOptions) -> AsyncIterator[Rpc]:
    """A chain without contracts."""
    async with started(bare_options) as rpc:
        yield rpc


@pytest.fixture
async def bare_rpc(bare_chain: Rpc) -> AsyncIterator[Rpc]:
    snapshot = await bare_chain.send("evm_snapshot")
    yield bare_chain
    await take_back(bare_chain, snapshot)


@pytest.fixture
async def bare_proxy(bare_rpc: Rpc, bare_options: DevChainOptions) -> AsyncIterator[FaultProxy]:
    del bare_rpc
    async with proxying(url_of(bare_options)) as proxy:
        yield proxy


@pytest.fixture
def plan() -> DeployPlan:
    return sandbox_plan(NPM_FOLDER)

"""A chain with a market and an event, and a database for its index."""

import dataclasses
import itertools
from collections.abc import AsyncIterator
from typing import Final

import pytest
from tests.conftest import NPM_FOLDER
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import DEPTH_MAX, EventActs, RandomHistory, a_short_history
from tests.rigs.chain_snapshots import take_back
from tests.rigs.events import SandboxEvent
from tests.rigs.postgres import PostgresServer
from tests.rigs.sandbox import Sandbox, deploy_sandbox
from tests.rigs.values import an_address

from foretell.bench.rigs.ports import free_port
from foretell.chain.devchain import DevChain, DevChainOptions
from foretell.chain.rpc import Rpc
from foretell.store.database import Database

STATES_KEPT: Final = 2 * DEPTH_MAX
NOBODY: Final = an_address("nobody")
SERIALS: Final = itertools.count(1)


@pytest.fixture(scope="session")
async def deep_sandbox(
    devchain_options: DevChainOptions, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Sandbox]:
    """All contracts on a chain that keeps enough states to be reorganized as deep as histories are."""
    options = dataclasses.replace(
        devchain_options,
        folder=tmp_path_factory.mktemp("deep-chain"),
        port=free_port(),
        states_kept=STATES_KEPT,
    )
    chain = DevChain(options)
    await chain.start()
    async with Rpc(chain.rpc_url) as rpc:
        folder = tmp_path_factory.mktemp("deep-sandbox")
        yield await deploy_sandbox(chain.rpc_url, rpc, NPM_FOLDER, folder)
    await chain.stop()


@pytest.fixture
async def fresh_sandbox(deep_sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """The deep chain, reverted to its snapshot after the test.

    No block has the hash of one of an earlier test: the node forgets the states of both at once.
    """
    snapshot = await deep_sandbox.rpc.send("evm_snapshot")
    await deep_sandbox.rpc.send("anvil_setBalance", NOBODY, hex(next(SERIALS)))
    yield deep_sandbox
    await take_back(deep_sandbox.rpc, snapshot)


@pytest.fixture
async def market(fresh_sandbox: Sandbox) -> AsyncIterator[tuple[IndexerRig, EventActs]]:
    """A market and an event, whose traders hold complete sets; blocks are mined on demand."""
    event = await SandboxEvent.ask(fresh_sandbox)
    await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    rig = IndexerRig(fresh_sandbox, await fresh_sandbox.ask(), seed=1)
    acts = EventActs(event, 1)
    await rig.open()
    await acts.open()
    await fresh_sandbox.mine(DEPTH_MAX)
    yield rig, acts
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own


@pytest.fixture
def emptied_postgres_url(postgres: PostgresServer) -> str:
    postgres.empty_database()
    return postgres.database_url


@pytest.fixture
async def postgres_database(emptied_postgres_url: str) -> AsyncIterator[Database]:
    """An open database on PostgreSQL with the current schema and no rows."""
    async with Database(emptied_postgres_url) as database:
        yield database


@pytest.fixture
async def played(
    fresh_sandbox: Sandbox, market: tuple[IndexerRig, EventActs], fresh_database: Database
) -> RandomHistory:
    """A short history on SQLite."""
    return await a_short_history(fresh_sandbox, market, fresh_database)

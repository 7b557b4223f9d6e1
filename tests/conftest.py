"""What every test may ask for: a real chain of its own, a database, the event loop's backend."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.rigs.chain_snapshots import take_back
from tests.rigs.databases import SharedDatabase
from tests.rigs.ports import free_port
from tests.rigs.sandbox import Sandbox, furnish

from foretell.chain.devchain import DevChain, DevChainOptions, find_anvil
from foretell.chain.rpc import Rpc
from foretell.store.database import Database
from foretell.store.migrations import upgrade

pytest_plugins = ["tests.rigs.postgres"]

NPM_FOLDER = Path(__file__).parents[1] / "contracts" / "node_modules"
SANDBOX_CHAIN_ID = 80002

# `quick` tries the same examples in every run; `--hypothesis-profile thorough` tries many new ones.
settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=5_000, deadline=None)
settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let every report say which statements of the checklist its test claims; see tests/spec.py."""
    for item in items:
        for mark in item.iter_markers("spec"):
            item.user_properties += [("spec", row) for row in mark.args]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with today's schema and nothing in it; tests copy the file."""
    path = tmp_path_factory.mktemp("database") / "foretell.db"
    asyncio.run(_migrate(path))
    return path


@pytest.fixture(scope="session")
async def shared_database(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SharedDatabase]:
    """One database for the whole test process; tests ask for `fresh_database`."""
    shared = SharedDatabase(empty_database, tmp_path_factory.mktemp("shared"))
    async with shared.database:
        yield shared


@pytest.fixture
async def fresh_database(shared_database: SharedDatabase) -> Database:
    """An open SQLite database with today's schema and nothing in it."""
    return await shared_database.emptied()


async def _migrate(path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        await upgrade(database)


@pytest.fixture(scope="session")
def anvil() -> Path:
    return find_anvil(None, NPM_FOLDER)


@pytest.fixture(scope="session")
def devchain_options(anvil: Path, tmp_path_factory: pytest.TempPathFactory) -> DevChainOptions:
    """A chain that mines each transaction as it arrives and keeps nothing on disk."""
    return DevChainOptions(
        anvil=anvil,
        folder=tmp_path_factory.mktemp("chain"),
        chain_id=SANDBOX_CHAIN_ID,
        port=free_port(),
        is_instant=True,
        is_kept=False,
    )


@pytest.fixture(scope="session")
async def devchain(devchain_options: DevChainOptions) -> AsyncIterator[DevChain]:
    """One chain for the whole test process; tests take it back by snapshot and revert."""
    chain = DevChain(devchain_options)
    await chain.start()
    yield chain
    await chain.stop()


@pytest.fixture(scope="session")
async def sandbox(
    devchain: DevChain, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Sandbox]:
    """The chain with everything deployed on it; a test that changes it asks for `fresh_sandbox`."""
    async with Rpc(devchain.rpc_url) as rpc:
        folder = tmp_path_factory.mktemp("sandbox")
        yield await furnish(devchain.rpc_url, rpc, NPM_FOLDER, folder)


@pytest.fixture
async def fresh_sandbox(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """The sandbox, taken back to where it was when the test ends."""
    snapshot = await sandbox.rpc.send("evm_snapshot")
    yield sandbox
    await take_back(sandbox.rpc, snapshot)

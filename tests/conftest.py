"""Fixtures for all tests: a real chain, a database, and the backend of the event loop."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.claims import claims_of
from tests.contracts.scenarios.seeds import choose_seed, seed_header
from tests.rigs.chain_snapshots import take_back
from tests.rigs.databases import SharedDatabase, share_compiled_statements
from tests.rigs.sandbox import Sandbox, deploy_sandbox
from tests.runs.distribution import ModuleScheduling, long_first
from xdist.remote import Producer

from foretell.bench.rigs.ports import free_port
from foretell.chain.devchain import DevChain, DevChainOptions, find_anvil
from foretell.chain.rpc import Rpc
from foretell.runtime.garbage_collection import YOUNG_OBJECTS_MAX
from foretell.store.database import Database
from foretell.store.migrations import upgrade

pytest_plugins = ["tests.edge.documents.conformance", "tests.rigs.postgres"]

NPM_FOLDER = Path(__file__).parents[1] / "contracts" / "node_modules"
SANDBOX_CHAIN_ID = 80002

# `quick` tries the same examples in every run; `--hypothesis-profile thorough` tries many new ones.
settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=5_000, deadline=None)
settings.load_profile("quick")


# Processes that tests start would compile seconds of modules each time, in an environment that keeps none.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell has what it starts in the background ignore Ctrl-C. The programs that tests end with it inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

share_compiled_statements()

# Collection makes a million objects that all stay; `pytest_collection_finish` switches it on again.
gc.disable()


def pytest_configure() -> None:
    """Choose the seed of this run, before its workers start and inherit it."""
    choose_seed()


def pytest_report_header() -> str:
    """Print the seed of this run, by which a failure is repeated."""
    return seed_header()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling | None:
    """Distribute the whole suite by groups and modules; a run of some paths keeps its workers equally busy."""
    is_whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    if not is_whole or config.getoption("dist") != "loadgroup":
        return None
    return ModuleScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the rows of tables that a test claims to its report (tests/claims.py), and begin with long tests."""
    for item in items:
        item.user_properties += claims_of(item)
    if hasattr(config, "workerinput"):
        items[:] = long_first(items)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from the searches for garbage, which begin now, and search as rarely as a server."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])
    gc.enable()


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Search for no garbage during a test: what it leaves in cycles stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def played(request: pytest.FixtureRequest) -> Callable[[int], None]:
    """A function that reports how often a test has played its fault, for `make faults`."""

    def report(count: int) -> None:
        request.node.user_properties.append(("played", count))

    return report


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with the current schema and no rows; tests copy the file."""
    path = tmp_path_factory.mktemp("database") / "foretell.db"
    asyncio.run(_migrate(path))
    return path


@pytest.fixture(scope="session")
async def shared_database(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SharedDatabase]:
    """One database for the whole test process; tests use `fresh_database`."""
    shared = SharedDatabase(empty_database, tmp_path_factory.mktemp("shared"))
    async with shared.database:
        yield shared


@pytest.fixture
async def fresh_database(shared_database: SharedDatabase) -> Database:
    """An open SQLite database with the current schema and no rows."""
    return await shared_database.emptied()


async def _migrate(path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        await upgrade(database)


@pytest.fixture(scope="session")
def anvil() -> Path:
    return find_anvil(None, NPM_FOLDER)


@pytest.fixture(scope="session")
def devchain_options(anvil: Path, tmp_path_factory: pytest.TempPathFactory) -> DevChainOptions:
    """A chain that mines each transaction on arrival and stores nothing on disk."""
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
    """One chain for the whole test process; tests revert it to a snapshot."""
    chain = DevChain(devchain_options)
    await chain.start()
    yield chain
    await chain.stop()


@pytest.fixture(scope="session")
async def sandbox(
    devchain: DevChain, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Sandbox]:
    """The chain with all contracts; a test that changes it uses `fresh_sandbox`."""
    async with Rpc(devchain.rpc_url) as rpc:
        folder = tmp_path_factory.mktemp("sandbox")
        yield await deploy_sandbox(devchain.rpc_url, rpc, NPM_FOLDER, folder)


@pytest.fixture
async def fresh_sandbox(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """The sandbox, reverted to its snapshot after the test."""
    snapshot = await sandbox.rpc.send("evm_snapshot")
    yield sandbox
    await take_back(sandbox.rpc, snapshot)

"""Installations that tests start, and that end with the tests."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.e2e.walker import Walker
from tests.rigs.installation import Running

from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.sdk.http import HttpClient
from foretell.sdk.trading import TradingClient, Wallet


@contextlib.contextmanager
def an_installation(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    try:
        yield running
    finally:
        if running.process is not None and running.process.poll() is None:
            running.process.kill()
            running.process.wait()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Running]:
    """An installation that was never started."""
    with an_installation(tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
async def seeded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of an installation that was started once and stopped; all processes of a run share it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "seeded"
        folder.mkdir(exist_ok=True)
    else:
        folder = tmp_path_factory.mktemp("seeded")
    with (folder / "lock").open("a") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        if not (folder / "seeded").exists():
            with an_installation(folder) as running:
                await running.start()
                assert running.stop() == 0, running.output
            (folder / "seeded").touch()
    return folder / "data"


@pytest.fixture
def stopped(seeded_folder: Path, tmp_path: Path) -> Iterator[Running]:
    """A stopped installation with its first market."""
    with an_installation(tmp_path) as stopped:
        shutil.copytree(seeded_folder, stopped.data)
        yield stopped


@pytest.fixture
async def running(stopped: Running) -> Running:
    """A running installation with its first market."""
    await stopped.start()
    return stopped


@pytest.fixture(scope="module")
async def shared(
    seeded_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """A running installation for a module's tests that neither stop it nor trade on its first market.

    It ends with the module: it uses a processor even when nobody calls it.
    """
    with an_installation(tmp_path_factory.mktemp("shared")) as shared:
        shutil.copytree(seeded_folder, shared.data)
        await shared.start()
        yield shared
        assert shared.stop() == 0, shared.output


@pytest.fixture
async def walker(shared: Running) -> AsyncIterator[Walker]:
    ready = await shared.ready()
    deployment = parse_deployment((shared.data / "deployment.json").read_bytes())
    wallet = Wallet(ready.account(AccountRole.TRADER).key)
    separators = deployment.separators()
    async with HttpClient(ready.clob) as http:
        trader = TradingClient(http, wallet, ready.chain_id, separators, lambda: int(time.time()))
        await trader.create_key()
        yield Walker(trader, ready, f"http://127.0.0.1:{shared.port}")

"""A node of another chain, a chain that mines on request, and a folder with databases, for all tests here."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.chain.chains import started
from tests.rigs.sandbox import Sandbox
from tests.settlement.rig import DATABASE_FILE

from foretell.bench.rigs.ports import free_port
from foretell.chain import rpc as rpc_module
from foretell.chain.devchain import DevChainOptions

OTHER_CHAIN_ID: Final = 137


@pytest.fixture(scope="session")
async def other_chain(
    devchain_options: DevChainOptions, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The URL of a node of another chain, without contracts."""
    folder: Path = tmp_path_factory.mktemp("other-chain")
    options = replace(devchain_options, folder=folder, port=free_port(), chain_id=OTHER_CHAIN_ID)
    async with started(options) as rpc:
        yield rpc.url


@pytest.fixture
async def manual(fresh_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    """A chain that mines on request only, so that each run is the same; reads are repeated at once."""
    monkeypatch.setattr(rpc_module, "RETRY_S", 0.001)
    monkeypatch.setattr(rpc_module, "RETRY_S_MAX", 0.002)
    await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    yield fresh_sandbox
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own


@pytest.fixture
def folder(empty_database: Path, tmp_path: Path) -> Path:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    shutil.copy(empty_database, tmp_path / "fresh.db")
    return tmp_path

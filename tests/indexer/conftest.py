"""The rig of the indexer on the real chain, and a database for it."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.indexer.rig import IndexerRig
from tests.rigs.databases import PATIENT
from tests.rigs.sandbox import Sandbox

from foretell.store.database import Database


@pytest.fixture
async def database(empty_database: Path, tmp_path: Path) -> AsyncIterator[Database]:
    path = shutil.copy(empty_database, tmp_path / "foretell.db")
    async with Database(f"sqlite+aiosqlite:///{path}", PATIENT) as database:
        yield database


@pytest.fixture
async def rig(fresh_sandbox: Sandbox) -> AsyncIterator[IndexerRig]:
    """A market whose traders hold complete sets."""
    await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    market = IndexerRig(fresh_sandbox, await fresh_sandbox.ask(), seed=1)
    await market.open()
    yield market
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own

"""The trading product, fresh for each test, its database empty."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.trading.rig import Trader, TradingRig, a_rig_on

from foretell.store.database import Database


@pytest.fixture
def database_file(empty_database: Path, tmp_path: Path) -> Path:
    """A database for a test that opens one itself."""
    return Path(shutil.copy(empty_database, tmp_path / "foretell.db"))


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """The product with one open market, and funds for alice, bob and carol."""
    async with a_rig_on(tmp_path / "journal", fresh_database) as rig:
        await rig.open("market", "alice", "bob", "carol")
        yield rig


@pytest.fixture
async def alice(rig: TradingRig) -> Trader:
    return await rig.trader("alice")


@pytest.fixture
async def bob(rig: TradingRig) -> Trader:
    return await rig.trader("bob")

"""A chain with a market and an event, and a database for its index."""

from collections.abc import AsyncIterator

import pytest
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import DEPTH_MAX, EventActs
from tests.rigs.events import SandboxEvent
from tests.rigs.postgres import PostgresServer
from tests.rigs.sandbox import Sandbox

from foretell.store.database import Database


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

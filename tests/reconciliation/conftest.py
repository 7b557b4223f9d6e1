"""A chain with a market and an event, and a database for its index."""

from collections.abc import AsyncIterator

import pytest
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import DEPTH_MAX, EventActs
from tests.rigs.events import SandboxEvent
from tests.rigs.sandbox import Sandbox


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

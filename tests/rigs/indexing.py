"""An indexer of the sandbox's chain, for the rigs of several rooms."""

from typing import Any

from tests.rigs.sandbox import Sandbox

from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.follow import Step, follow
from foretell.store.database import Database


def an_indexer(
    sandbox: Sandbox, database: Database, rpc: Rpc | None = None, **fields: Any
) -> IndexerContext:
    """Return an indexer of the sandbox as after a start: its only memory is the tables."""
    deployment = sandbox.deployment
    rpc = rpc or sandbox.rpc
    values: dict[str, Any] = {
        "database": database,
        "reader": Reader(rpc, deployment),
        "logs": LogReader(rpc, deployment.kind_by_contract()),
        "contracts": IndexedContracts.of(deployment),
        "start_block": deployment.start_block,
        "poll_interval_s": 0.01,
    }
    return IndexerContext(**(values | fields))


async def catch_up(context: IndexerContext) -> Step:
    """Follow the chain until nothing is left to read."""
    while (step := await follow(context)).is_behind:
        pass
    return step

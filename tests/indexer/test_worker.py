import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.indexer.rig import IndexerRig, check_against_chain, dump, wipe
from tests.indexer.test_follow import PREPARE
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import an_address
from typing_extensions import override

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ChainUnavailable
from foretell.indexer.context import IndexerContext
from foretell.indexer.worker import run
from foretell.store.database import Database
from foretell.store.index.blocks import TOPIC, load_last_block

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0


@contextlib.asynccontextmanager
async def running(context: IndexerContext) -> AsyncIterator[None]:
    task = asyncio.create_task(run(context))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def reached_head(sandbox: Sandbox, database: Database) -> None:
    """Return once the tables are those of the chain's newest block."""
    watch = await database.watch(TOPIC)
    async with asyncio.timeout(DEADLINE_S):
        while True:
            header = await sandbox.reader.header()
            async with database.reading() as tx:
                last = await load_last_block(tx)
            if header is not None and last is not None and last.block_hash == header.block_hash:
                return
            await watch.wait(1)


async def test_the_worker_follows_the_head(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    async with running(an_indexer(fresh_sandbox, database, blocks_per_range_max=5)):
        for _ in range(3):
            await rig.act()
            await reached_head(fresh_sandbox, database)
    await check_against_chain(fresh_sandbox, database)


async def test_the_worker_logs_a_reorg(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    with capture_logs() as logs:
        async with running(an_indexer(fresh_sandbox, database)):
            snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
            await rig.act()
            await reached_head(fresh_sandbox, database)
            await fresh_sandbox.rpc.send("evm_revert", snapshot)
            await reached_head(fresh_sandbox, database)
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
        "blocks were unwound"
    ]


async def test_the_worker_logs_what_it_ignored(fresh_sandbox: Sandbox, database: Database) -> None:
    calldata = PREPARE.encode(an_address("oracle"), bytes(32), 3)
    tokens = fresh_sandbox.deployment.conditional_tokens
    with capture_logs() as logs:
        async with running(an_indexer(fresh_sandbox, database)):
            await fresh_sandbox.call(fresh_sandbox.account(AccountRole.ADMIN), tokens, calldata)
            await reached_head(fresh_sandbox, database)
    counted = [line for line in logs if line["event"] == "logs were ignored"]
    assert sum(line["condition that is not binary"] for line in counted) == 1


class FailingRpc(Rpc):
    """A connection that fails the first few calls."""

    failures_left = 3

    @override
    async def call(self, method: str, *params: object) -> Any:
        if self.failures_left:
            self.failures_left -= 1
            raise ChainUnavailable(method, "cable")
        return await super().call(method, *params)


async def test_a_node_that_does_not_answer_is_asked_again(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    async with FailingRpc(fresh_sandbox.rpc_url) as rpc:
        context = an_indexer(fresh_sandbox, database, rpc)
        with capture_logs() as logs:
            async with running(context):
                await reached_head(fresh_sandbox, database)
    assert [(line["event"], line.get("failures")) for line in logs] == [
        ("step failed and is repeated", None),
        ("step works again", 3),
    ]


@pytest.mark.parametrize("ticks", [1, 5, 20, 80])
async def test_a_worker_that_was_stopped_at_any_point_continues_after_its_last_block(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database, ticks: int
) -> None:
    for _ in range(10):
        await rig.act()
    for _ in range(10):
        async with running(an_indexer(fresh_sandbox, database, blocks_per_range_max=3)):
            for _ in range(ticks):
                await asyncio.sleep(0)
    await catch_up(an_indexer(fresh_sandbox, database))
    resumed = await dump(database)
    await wipe(database)
    await catch_up(an_indexer(fresh_sandbox, database))
    assert await dump(database) == resumed

"""A second indexer, which was started by mistake, beside a reorg."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.indexer.rig import IndexerRig, dump, wipe
from tests.rigs.databases import PATIENT
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import a_word

from foretell.chain.logs import BlockLogs
from foretell.chain.rpc_types import BlockHeader
from foretell.domain.errors.chain import ChainInconsistent
from foretell.indexer import reorg
from foretell.indexer.follow import fetch_head, follow, record_range
from foretell.indexer.reorg import unwind_to_ancestor
from foretell.store.database import Database, Transaction
from foretell.store.index.blocks import load_blocks_down, load_last_block
from foretell.store.index.unwind import unwind

pytestmark = pytest.mark.anyio


@pytest.fixture
async def either(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url, PATIENT) as database:
        yield database


async def reorganize(rig: IndexerRig, sandbox: Sandbox, database: Database) -> None:
    """Index some blocks of which the chain then loses the newest ones, and has others."""
    await rig.act()
    snapshot = await sandbox.rpc.send("evm_snapshot")
    await rig.act()
    await rig.act()
    await catch_up(an_indexer(sandbox, database))
    assert await sandbox.rpc.send("evm_revert", snapshot)
    await sandbox.rpc.send("evm_increaseTime", 5)
    await rig.act()


async def check_fresh(sandbox: Sandbox, database: Database) -> None:
    """Check that the tables are those of an indexer that has been alone."""
    await catch_up(an_indexer(sandbox, database))
    found = await dump(database)
    await wipe(database)
    await catch_up(an_indexer(sandbox, database))
    assert found == await dump(database)


async def test_guard_an_indexer_takes_nothing_back_after_another_has_gone_on(
    rig: IndexerRig, fresh_sandbox: Sandbox, either: Database
) -> None:
    await reorganize(rig, fresh_sandbox, either)
    context = an_indexer(fresh_sandbox, either)
    async with either.reading() as tx:
        last = await load_last_block(tx)
    assert last is not None
    head = await fetch_head(context)
    await catch_up(an_indexer(fresh_sandbox, either))
    before = await dump(either)
    with pytest.raises(ChainInconsistent, match="another indexer"):
        await unwind_to_ancestor(context, last, head)
    assert await dump(either) == before


async def test_guard_one_indexer_that_takes_blocks_back_and_one_that_goes_on_leave_no_gap(
    rig: IndexerRig,
    fresh_sandbox: Sandbox,
    either: Database,
    each_database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finding: on PostgreSQL neither saw what the other had not committed yet."""
    await reorganize(rig, fresh_sandbox, either)
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def paused(tx: Transaction, block_number: int) -> None:
        await unwind(tx, block_number)
        has_begun.set()
        await may_end.wait()

    async with either.reading() as tx:
        last = await load_last_block(tx)
    assert last is not None
    follower = BlockHeader(
        last.block_number + 1, a_word("next"), last.block_hash, last.timestamp_s, bytes(256), 1
    )
    async with Database(each_database_url, PATIENT) as other:
        second = an_indexer(fresh_sandbox, other)
        with monkeypatch.context() as patched:
            patched.setattr(reorg, "unwind", paused)
            unwinding = asyncio.create_task(follow(an_indexer(fresh_sandbox, either)))
            await has_begun.wait()
            found = [BlockLogs(follower, (), 0)]
            going_on = asyncio.create_task(record_range(second, last, found))
            await asyncio.sleep(0.5)
            may_end.set()
            outcomes = await asyncio.gather(unwinding, going_on, return_exceptions=True)
    assert not isinstance(outcomes[0], BaseException), outcomes
    assert isinstance(outcomes[1], ChainInconsistent)
    async with either.reading() as tx:
        numbers = [each.block_number for each in await load_blocks_down(tx, 10**9, 1_000)]
    assert numbers == list(range(numbers[0], numbers[-1] - 1, -1))
    await check_fresh(fresh_sandbox, either)

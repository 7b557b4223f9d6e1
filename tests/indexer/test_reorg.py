import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.indexer.rig import (
    Dump,
    IndexerRig,
    check_against_chain,
    dump,
    dump_standings,
    wipe,
)
from tests.rigs.read_apis import keep_rankings
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import a_word

from foretell.domain.errors.chain import ReorgTooDeep
from foretell.indexer.follow import follow
from foretell.indexer.reorg import find_ancestor
from foretell.store.database import Database
from foretell.store.index.blocks import TOPIC, load_blocks_down
from foretell.store.trading.trades import Quote, record_quotes

pytestmark = pytest.mark.anyio

STEPS = 30


class Reorgs:
    """A chain with reorgs at random, read by an indexer that restarts at every step."""

    def __init__(self, sandbox: Sandbox, rig: IndexerRig, database: Database, seed: int) -> None:
        self.sandbox, self.rig, self.database = sandbox, rig, database
        self.random = random.Random(seed)
        self.snapshots: list[str] = []
        self.reorgs = 0

    async def play(self) -> None:
        """Grow, index and reorganize in random order; end with a reorg that the indexer must notice."""
        acts = [self.grow] * 4 + [self.remember] * 2 + [self.run_once] * 3 + [self.forget] * 2
        acts += [self.rig.resolve, self.rig.ask, self.rank, self.rank]
        for act in [self.remember, self.grow, *self.random.choices(acts, k=STEPS)]:
            await act()
        for act in (self.remember, self.grow, self.run_once, self.forget, self.grow):
            await act()

    async def grow(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            await self.rig.act()

    async def remember(self) -> None:
        self.snapshots.append(await self.sandbox.rpc.send("evm_snapshot"))

    async def forget(self) -> None:
        """Reset the chain to a remembered block; the blocks after it are gone."""
        index = self.random.randrange(len(self.snapshots) + 1)
        for snapshot in self.snapshots[index : index + 1]:
            assert await self.sandbox.rpc.send("evm_revert", snapshot)
        del self.snapshots[index:]

    async def rank(self) -> None:
        """Bring the standings to what is indexed, at a price that moves."""
        bid = self.random.randint(1, 50)
        async with self.database.writing() as tx:
            quote = Quote(self.rig.condition_id, 100, bid, bid + 9, None, None, 0, bid)
            await record_quotes(tx, [quote])
        await keep_rankings(self.database, await now_ms(self.sandbox))

    async def run_once(self) -> None:
        """Follow one range of random size with an indexer that has just started."""
        size = self.random.choice([1, 3, 200])
        context = an_indexer(self.sandbox, self.database, blocks_per_range_max=size)
        self.reorgs += (await follow(context)).unwound_blocks > 0


async def now_ms(sandbox: Sandbox) -> int:
    """Return a time some days after the newest block, so that it is in some periods only."""
    head = await sandbox.reader.header("latest")
    assert head is not None
    return (head.timestamp_s + 2 * 86_400) * 1000


async def fresh_dump(sandbox: Sandbox, database: Database, **fields: Any) -> Dump:
    """Return the tables of an indexer that has read only the present chain."""
    await wipe(database)
    assert await dump_standings(database) == {"standings": [], "rank_counts": [], "wins": []}
    await catch_up(an_indexer(sandbox, database, **fields))
    return await dump(database)


@pytest.mark.case("E-01", "B-14")
@settings(
    max_examples=settings().max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
async def test_after_any_reorgs_the_tables_equal_those_of_a_fresh_index(
    fresh_sandbox: Sandbox, rig: IndexerRig, database: Database, seed: int
) -> None:
    base = await fresh_sandbox.rpc.send("evm_snapshot")
    await wipe(database)
    reorgs = Reorgs(fresh_sandbox, rig, database, seed)
    try:
        await reorgs.play()
        await catch_up(an_indexer(fresh_sandbox, database))
        after_reorgs = await dump(database)
        await check_against_chain(fresh_sandbox, database)
        ranked_at_ms = await now_ms(fresh_sandbox)
        await keep_rankings(database, ranked_at_ms)
        ranked = await dump_standings(database)
        assert await fresh_dump(fresh_sandbox, database) == after_reorgs
        await keep_rankings(database, ranked_at_ms)
        assert await dump_standings(database) == ranked
    finally:
        assert await fresh_sandbox.rpc.send("evm_revert", base)


async def test_a_shorter_chain_unwinds_the_tables(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    context = an_indexer(fresh_sandbox, database)
    await catch_up(context)
    before = await dump(database)
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    await rig.act()
    await catch_up(context)
    assert await dump(database) != before
    watch = await database.watch(TOPIC)
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    step = await follow(context)
    assert step.unwound_blocks > 0
    assert (step.indexed_blocks, step.is_behind) == (0, False)
    assert await dump(database) == before
    assert await watch.wait(5)


async def test_another_block_of_the_same_height_is_noticed(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    context = an_indexer(fresh_sandbox, database)
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    await fresh_sandbox.mine()
    height = (await catch_up(context)).head_number
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    await fresh_sandbox.rpc.send("evm_increaseTime", 5)
    await fresh_sandbox.mine()
    step = await catch_up(context)
    assert (step.head_number, step.unwound_blocks) == (height, 1)
    assert await dump(database) == await fresh_dump(fresh_sandbox, database)


async def test_a_chain_that_restarted_is_indexed_from_its_start(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    start = await fresh_sandbox.reader.head() + 1
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    await rig.act()
    context = an_indexer(fresh_sandbox, database, start_block=start)
    await catch_up(context)
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    step = await follow(context)
    assert step.last is None
    assert step.unwound_blocks > 0
    await fresh_sandbox.rpc.send("evm_increaseTime", 5)
    await fresh_sandbox.mine(3)
    await catch_up(context)
    fresh = await fresh_dump(fresh_sandbox, database, start_block=start)
    assert fresh["blocks"][0][0] == start


@pytest.mark.parametrize("mined_blocks", [0, 10])
async def test_a_reorg_below_the_kept_blocks_is_refused_and_changes_nothing(
    fresh_sandbox: Sandbox, database: Database, mined_blocks: int
) -> None:
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    await fresh_sandbox.mine(8)
    context = an_indexer(fresh_sandbox, database, reorg_blocks_max=3)
    await catch_up(context)
    before = await dump(database)
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    await fresh_sandbox.rpc.send("evm_increaseTime", 5)
    await fresh_sandbox.mine(mined_blocks)
    with pytest.raises(ReorgTooDeep):
        await follow(context)
    assert await dump(database) == before


async def test_m1_a_head_below_the_first_block_unwinds_no_long_index(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    """A finding: a node that started from nothing named its first block once, and the whole index was deleted."""
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    start = await fresh_sandbox.reader.head() + 1
    await fresh_sandbox.mine(8)
    context = an_indexer(fresh_sandbox, database, start_block=start, reorg_blocks_max=3)
    await catch_up(context)
    before = await dump(database)
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    with pytest.raises(ReorgTooDeep):
        await follow(context)
    assert await dump(database) == before


@pytest.mark.parametrize("shared", range(8))
async def test_the_ancestor_is_the_highest_block_that_both_have(
    fresh_sandbox: Sandbox, database: Database, shared: int
) -> None:
    await fresh_sandbox.mine(7)
    head = (await catch_up(an_indexer(fresh_sandbox, database))).head_number
    async with database.reading() as tx:
        known = await load_blocks_down(tx, head, 7)
    others = len(known) - shared
    forked = [block._replace(block_hash=a_word("fork")) for block in known[:others]]
    ancestor = await find_ancestor(fresh_sandbox.reader, [*forked, *known[others:]])
    assert [ancestor] == [*known[others:], None][:1]


async def test_a_block_above_the_head_is_no_ancestor(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    step = await catch_up(an_indexer(fresh_sandbox, database))
    assert step.last is not None
    above = step.last._replace(block_number=step.head_number + 5)
    assert await find_ancestor(fresh_sandbox.reader, [above, step.last]) == step.last

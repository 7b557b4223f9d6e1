import random
from typing import Any

import pytest
from tests.indexer.rig import IndexerRig, check_against_chain, dump, wipe
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import an_address
from typing_extensions import override

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.evm.abi import contract_function
from foretell.indexer.follow import block_of, follow, record_range
from foretell.store.database import Database
from foretell.store.index.blocks import TOPIC, load_blocks_down

pytestmark = pytest.mark.anyio

PREPARE = contract_function("prepareCondition(address,bytes32,uint256)")


async def busy_market(rig: IndexerRig) -> None:
    """Have traders act before and after the question is answered."""
    for _ in range(40):
        await rig.act()
    await rig.resolve()
    for _ in range(20):
        await rig.act()


async def test_tables_equal_the_values_of_the_contracts(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    await busy_market(rig)
    step = await catch_up(an_indexer(fresh_sandbox, database))
    assert step.last is not None
    assert step.last.block_number == step.head_number
    await check_against_chain(fresh_sandbox, database)


@pytest.mark.parametrize("blocks_per_range_max", [1, 7])
async def test_tables_do_not_depend_on_the_size_of_a_range(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database, blocks_per_range_max: int
) -> None:
    await busy_market(rig)
    await catch_up(an_indexer(fresh_sandbox, database))
    whole = await dump(database)
    await wipe(database)
    context = an_indexer(fresh_sandbox, database, blocks_per_range_max=blocks_per_range_max)
    await catch_up(context)
    assert await dump(database) == whole


async def test_one_step_reads_one_range(fresh_sandbox: Sandbox, database: Database) -> None:
    await fresh_sandbox.mine(10)
    context = an_indexer(fresh_sandbox, database, blocks_per_range_max=4)
    step = await follow(context)
    assert (step.indexed_blocks, step.unwound_blocks) == (4, 0)
    assert step.last is not None
    assert step.last.block_number == context.start_block + 3
    assert step.is_behind


async def test_a_chain_without_new_blocks_changes_nothing(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    context = an_indexer(fresh_sandbox, database)
    done = await catch_up(context)
    watch = await database.watch(TOPIC)
    step = await follow(context)
    assert step == done._replace(indexed_blocks=0, ignored={})
    assert not step.is_behind
    assert not await watch.wait(0.01)


async def test_new_blocks_wake_the_watches_on_them(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    watch = await database.watch(TOPIC)
    await follow(an_indexer(fresh_sandbox, database))
    assert await watch.wait(5)


async def test_a_chain_that_has_not_reached_the_start_is_waited_for(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    head = await fresh_sandbox.reader.head()
    context = an_indexer(fresh_sandbox, database, start_block=head + 2)
    await fresh_sandbox.mine()
    assert (await follow(context)).last is None
    await fresh_sandbox.mine()
    step = await follow(context)
    assert step.last is not None
    assert step.last.block_number == head + 2


async def test_only_blocks_that_a_reorg_can_reach_are_kept(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    await fresh_sandbox.mine(10)
    step = await catch_up(an_indexer(fresh_sandbox, database, reorg_blocks_max=3))
    async with database.reading() as tx:
        kept = await load_blocks_down(tx, step.head_number, 100)
    assert [block.block_number for block in kept] == [step.head_number - n for n in range(4)]


async def test_ignored_logs_are_counted(fresh_sandbox: Sandbox, database: Database) -> None:
    context = an_indexer(fresh_sandbox, database)
    await catch_up(context)
    calldata = PREPARE.encode(an_address("oracle"), bytes(32), 3)
    tokens = fresh_sandbox.deployment.conditional_tokens
    await fresh_sandbox.call(fresh_sandbox.account(AccountRole.ADMIN), tokens, calldata)
    assert (await follow(context)).ignored == {"condition that is not binary": 1}


async def test_two_indexers_do_not_write_the_same_tables(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    context = an_indexer(fresh_sandbox, database)
    start = context.start_block
    found = await context.logs.read(start, start)
    await record_range(context, None, found)
    before = await dump(database)
    with pytest.raises(ChainInconsistent):
        await record_range(context, None, found)
    assert await dump(database) == before
    following = await context.logs.read(start + 1, start + 1)
    await record_range(context, block_of(found[0].header), following)


class HeadlessRpc(Rpc):
    """A connection to a node that has no blocks."""

    @override
    async def call(self, method: str, *params: object) -> Any:
        return None


async def test_a_node_without_a_newest_block_is_refused(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    async with HeadlessRpc(fresh_sandbox.rpc_url) as rpc:
        with pytest.raises(ChainInconsistent):
            await follow(an_indexer(fresh_sandbox, database, rpc))


class LyingRpc(Rpc):
    """A connection whose node, while it lies, omits, repeats or reorders logs."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(url)
        self._random = random.Random(seed)
        self.is_lying = True
        self.lies = 0

    @override
    async def call_as(self, kind: Any, method: str, *params: object) -> Any:
        answer = await super().call_as(kind, method, *params)
        if not self.is_lying or method != "eth_getLogs" or not answer:
            return answer
        self.lies += 1
        index = self._random.randrange(len(answer))
        match self._random.choice(["omit", "omit all", "repeat", "reorder"]):
            case "omit":
                return answer[:index] + answer[index + 1 :]
            case "omit all":
                return []
            case "repeat":
                return [*answer, answer[index]]
            case _:
                return answer[::-1]


@pytest.mark.case("E-02")
@pytest.mark.parametrize("seed", range(10))
async def test_a_node_that_lies_about_logs_never_leaves_a_gap(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database, seed: int
) -> None:
    await rig.act()
    await rig.act()
    await catch_up(an_indexer(fresh_sandbox, database))
    truth = await dump(database)
    await wipe(database)
    async with LyingRpc(fresh_sandbox.rpc_url, seed) as rpc:
        context = an_indexer(fresh_sandbox, database, rpc)
        with pytest.raises(ChainInconsistent):
            await catch_up(context)
        assert rpc.lies == 1
        rpc.is_lying = False
        await catch_up(context)
    assert await dump(database) == truth

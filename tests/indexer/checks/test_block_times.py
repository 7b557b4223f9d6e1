"""Times of blocks that a node names falsely, once or again and again."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import structs
from tests.indexer.rig import IndexerRig, dump, wipe
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from typing_extensions import override

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import RawBlock
from foretell.domain.errors.chain import ChainInconsistent
from foretell.indexer.block_times import GAP_S_MAX
from foretell.indexer.follow import follow
from foretell.store.database import Database

pytestmark = pytest.mark.anyio


class FalseTimeRpc(Rpc):
    """A connection whose node names another time of one block, among several or alone, once."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.number = 0
        self.time_of: Callable[[int], int] = lambda time_s: time_s
        self.lies_left = 0

    @override
    async def batch_as(self, kind: Any, calls: Sequence[Any]) -> list[Any]:
        answers: list[Any] = await super().batch_as(kind, calls)
        if kind is RawBlock:
            return [self._falsified(answer) for answer in answers]
        return answers

    def _falsified(self, block: RawBlock) -> RawBlock:
        if int(block.number, 16) != self.number or not self.lies_left:
            return block
        self.lies_left -= 1
        return structs.replace(block, timestamp=hex(self.time_of(int(block.timestamp, 16))))


FALSE_TIMES = {
    "far ahead": lambda time_s: time_s + 10 * 365 * 86_400,
    "a little ahead": lambda time_s: time_s + 60,
    "before the one below": lambda time_s: time_s - 60,
    "zero": lambda _: 0,
}


CASES = [
    (false_time, at_once)
    for false_time in FALSE_TIMES
    for at_once in (1, 3)
    if (false_time, at_once) != ("a little ahead", 1)  # of the newest block that is believed
]


@pytest.mark.parametrize(("false_time", "at_once"), CASES)
async def test_guard_a_false_time_that_a_node_names_once_is_not_stored(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database, false_time: str, at_once: int
) -> None:
    """A finding: a time far ahead ended the standings and the prices of all later blocks."""
    async with FalseTimeRpc(fresh_sandbox.rpc_url) as rpc:
        context = an_indexer(fresh_sandbox, database, rpc, blocks_per_range_max=at_once)
        await catch_up(context)
        for _ in range(3):
            await rig.act()
        head = await fresh_sandbox.reader.head()
        rpc.number, rpc.time_of, rpc.lies_left = head - 1, FALSE_TIMES[false_time], 1
        with pytest.raises(ChainInconsistent, match=rf"the time of block {head - 1} differ"):
            await catch_up(context)
        assert rpc.lies_left == 0
        await catch_up(context)
    found = await dump(database)
    await wipe(database)
    await catch_up(an_indexer(fresh_sandbox, database))
    assert found == await dump(database)


async def test_a_chain_whose_blocks_are_far_apart_is_followed(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    """As one of a sandbox is, whose time is moved; and one that stood still."""
    context = an_indexer(fresh_sandbox, database)
    await catch_up(context)
    for gap_s in (GAP_S_MAX, GAP_S_MAX + 1, 365 * 86_400, 1):
        await fresh_sandbox.rpc.send("evm_increaseTime", gap_s)
        await fresh_sandbox.mine(2)
        step = await follow(context)
        assert step.last is not None
        assert (step.last.block_number, step.indexed_blocks) == (step.head_number, 2)


async def test_a_time_that_a_node_repeats_is_believed(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    """Nobody can know better, and an index that stands still is worse."""

    class Stubborn(FalseTimeRpc):
        @override
        async def call(self, method: str, *params: object) -> Any:
            answer = await super().call(method, *params)
            if method == "eth_getBlockByNumber" and int(answer["number"], 16) == self.number:
                answer["timestamp"] = hex(self.time_of(int(answer["timestamp"], 16)))
            return answer

    async with Stubborn(fresh_sandbox.rpc_url) as rpc:
        context = an_indexer(fresh_sandbox, database, rpc)
        await catch_up(context)
        await fresh_sandbox.mine(3)
        head = await fresh_sandbox.reader.head()
        rpc.number, rpc.time_of, rpc.lies_left = head - 1, FALSE_TIMES["far ahead"], 100
        await catch_up(context)
        await fresh_sandbox.mine(1)
        assert (await catch_up(context)).head_number == head + 1

"""The lag of an engine behind its chain, with heads and a clock that a test chooses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.chain import ChainUnavailable
from foretell.engine.writer.chain_lag import ChainLag, LagLimits

pytestmark = [pytest.mark.anyio, pytest.mark.case("E-05")]

LIMIT_S = 120


class Node:
    """A node with a head, which answers or not, and a clock."""

    def __init__(self, limits: LagLimits) -> None:
        self.head = 100
        self.is_silent = False
        self.at_s = 1_000.0
        self.lag = ChainLag(self.fetch_head, limits, lambda: self.at_s)

    async def fetch_head(self) -> int:
        if self.is_silent:
            raise ChainUnavailable("eth_blockNumber", "no answer")
        return self.head

    async def pass_time(self, seconds: int, *, observes: bool = True) -> None:
        """Look once a second, as the loop does; the feed observes the head a moment later."""
        for _ in range(seconds):
            self.at_s += 1
            await self.lag.run_once()
            if observes:
                self.lag.observe(self.head)

    def refuses(self) -> bool:
        return self.lag.refusal is not None


@pytest.fixture
def node() -> Node:
    return Node(LagLimits(LIMIT_S))


async def test_a_chain_that_mines_on_demand_may_stand_still_for_ever(node: Node) -> None:
    await node.pass_time(10 * LIMIT_S)
    assert (node.refuses(), node.lag.lag_s) == (False, 0)


async def test_orders_are_refused_past_the_limit_while_the_node_is_silent(node: Node) -> None:
    await node.pass_time(5)
    node.is_silent = True
    await node.pass_time(LIMIT_S)
    assert not node.refuses()
    await node.pass_time(1)
    assert node.refuses()
    node.is_silent = False
    await node.pass_time(1)
    assert not node.refuses()


async def test_the_lag_needs_no_look_to_grow(node: Node) -> None:
    """A node that accepts a connection and is silent holds a look for long."""
    await node.pass_time(5)
    node.at_s += LIMIT_S + 1
    assert node.refuses()


async def test_orders_are_refused_while_the_index_does_not_follow(node: Node) -> None:
    await node.pass_time(5)
    for _ in range(LIMIT_S + 2):
        node.head += 1
        await node.pass_time(1, observes=False)
    assert node.refuses()
    node.lag.observe(node.head)
    await node.pass_time(1)
    assert not node.refuses()


async def test_a_head_that_jumps_is_a_lag_until_the_feed_has_reached_it(node: Node) -> None:
    await node.pass_time(5)
    node.head += 10_000
    for _ in range(LIMIT_S + 2):
        await node.pass_time(1, observes=False)
        node.lag.observe(node.head - 5_000)
    assert node.refuses()
    await node.pass_time(2)
    assert not node.refuses()


@given(growths=st.lists(st.integers(0, 30), min_size=1, max_size=200))
async def test_a_feed_that_is_one_look_behind_is_never_refused(growths: list[int]) -> None:
    """However fast blocks come: each look finds a head that the feed reaches by the next one."""
    node = Node(LagLimits(3))
    for growth in growths:
        seen = node.head
        node.head += growth
        await node.pass_time(1, observes=False)
        node.lag.observe(seen)
        assert not node.refuses()


async def test_a_chain_that_was_cut_back_is_followed_once_its_head_is_observed(node: Node) -> None:
    await node.pass_time(5)
    node.head += 10
    await node.pass_time(1, observes=False)
    node.head -= 5
    await node.pass_time(LIMIT_S + 2)
    assert not node.refuses()


@pytest.fixture
def regular() -> Node:
    """A chain with regular blocks."""
    return Node(LagLimits(LIMIT_S, still_s_max=60))


async def test_a_head_that_stands_still_is_refused_on_a_chain_with_regular_blocks(
    regular: Node,
) -> None:
    await regular.pass_time(60)
    assert not regular.refuses()
    await regular.pass_time(2)
    assert regular.refuses()
    regular.head += 1
    await regular.pass_time(1)
    assert not regular.refuses()


async def test_without_limits_nothing_is_refused() -> None:
    node = Node(LagLimits(0))
    node.is_silent = True
    await node.pass_time(LIMIT_S)
    assert not node.refuses()

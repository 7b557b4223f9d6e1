"""The report of solvency is kept for the longer, the longer it took."""

import pytest
from tests.rigs.values import NOW_MS, NOW_S, a_word

from foretell.data.solvency_books import KEPT_S, KEPT_S_MAX, KEPT_SHARE, SolvencyBooks
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.index.blocks import Block, record_blocks

pytestmark = pytest.mark.anyio


class Node:
    """A node whose answer takes a time of the clock."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.takes_ms = 0
        self.asked = 0

    async def fetch(self, _: Bytes32) -> BackingUnits:
        self.asked += 1
        self.now_ms += self.takes_ms
        return BackingUnits(0)


@pytest.mark.parametrize(
    ("takes_ms", "kept_ms"),
    [(0, int(KEPT_S * 1000)), (500, KEPT_SHARE * 500), (9_000, int(KEPT_S_MAX * 1000))],
)
async def test_a_report_is_kept_for_many_times_as_long_as_it_took(
    database: Database, takes_ms: int, kept_ms: int
) -> None:
    node = Node()
    node.takes_ms = takes_ms
    books = SolvencyBooks(database, None, node.fetch, lambda: node.now_ms)
    async with database.writing() as tx:
        await record_blocks(tx, [Block(1, a_word("block"), a_word("parent"), NOW_S)])
    await books.total()
    node.now_ms += kept_ms - 1
    await books.total()
    assert node.asked == 1
    node.now_ms += 1
    await books.total()
    assert node.asked == 2


async def test_a_failure_that_took_long_is_forgotten_as_soon_as_a_quick_one(
    database: Database,
) -> None:
    node = Node()

    async def fail(_: Bytes32) -> BackingUnits:
        await node.fetch(_)
        raise ChainUnavailable("eth_call", "no node")

    node.takes_ms = 9_000
    books = SolvencyBooks(database, None, fail, lambda: node.now_ms)
    async with database.writing() as tx:
        await record_blocks(tx, [Block(1, a_word("block"), a_word("parent"), NOW_S)])
    for asked in (1, 2):
        with pytest.raises(ChainUnavailable):
            await books.total()
        assert node.asked == asked
        node.now_ms += int(KEPT_S * 1000)

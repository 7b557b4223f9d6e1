import pytest
from tests.rigs.rows import Rows

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.index.blocks import (
    TOPIC,
    Block,
    load_block_ago,
    load_block_hash,
    load_blocks_down,
    load_last_block,
    prune_blocks,
    record_blocks,
)

pytestmark = pytest.mark.anyio


def a_word(number: int) -> Bytes32:
    return Bytes32(f"0x{number:064x}")


BLOCKS = [Block(number, a_word(number), a_word(number - 1), 1000 + number) for number in (7, 8, 9)]


async def test_an_empty_database_has_no_last_block(database: Database) -> None:
    async with database.reading() as tx:
        assert await load_last_block(tx) is None
        assert await load_block_hash(tx, 7) is None


async def test_the_last_block_is_the_highest(database: Database) -> None:
    async with database.writing() as tx:
        await record_blocks(tx, BLOCKS)
    async with database.reading() as tx:
        assert await load_last_block(tx) == BLOCKS[2]
        assert await load_block_hash(tx, 8) == a_word(8)
        assert await load_block_hash(tx, 6) is None


async def test_blocks_are_read_downwards(database: Database) -> None:
    async with database.writing() as tx:
        await record_blocks(tx, BLOCKS)
        assert await load_blocks_down(tx, 8, 1) == [BLOCKS[1]]
        assert await load_blocks_down(tx, 8, 9) == [BLOCKS[1], BLOCKS[0]]


async def test_blocks_below_the_reach_of_reorgs_are_deleted(database: Database) -> None:
    async with database.writing() as tx:
        await record_blocks(tx, BLOCKS)
        await prune_blocks(tx, 8)
        assert await load_blocks_down(tx, 9, 9) == [BLOCKS[2], BLOCKS[1]]


async def test_indexed_blocks_wake_the_watches_on_the_chain(database: Database) -> None:
    watch = await database.watch(TOPIC)
    async with database.writing() as tx:
        await record_blocks(tx, BLOCKS)
    assert await watch.wait(5)


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([], None),
        ([1000], None),
        ([1000, 1000], None),
        ([1000, 1002, 1004], 109),
        ([1000, 1003], 125),
    ],
)
async def test_a_block_of_long_ago_is_estimated_by_the_pace_of_those_that_are_kept(
    database: Database, times_s: list[int], expected: int | None
) -> None:
    kept = [
        Block(157 + number, a_word(number + 1), a_word(number), time_s)
        for number, time_s in enumerate(times_s)
    ]
    async with database.writing() as tx:
        await record_blocks(tx, kept)
        assert await load_block_ago(tx, 100) == expected


async def test_a_block_of_long_ago_is_that_of_the_last_activity_by_then(database: Database) -> None:
    """The pace of a chain that mines on demand says nothing of yesterday's."""
    async with database.writing() as tx:
        await record_blocks(tx, BLOCKS)
        rows = Rows(tx)
        for number, time_s in ((2, 200), (3, 309), (4, 310)):
            await rows.act(
                "ann", "rain", ActivityKind.SPLIT, 5, block_number=number, timestamp_s=time_s
            )
        assert await load_block_ago(tx, 700) == 3
        assert await load_block_ago(tx, 699) == 4

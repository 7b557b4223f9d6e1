"""Readers during a new index from zero: every answer shows one block in all tables."""

import asyncio
from typing import Any

import pytest
from tests.indexer.rig import Dump, IndexerRig, dump, wipe
from tests.rigs.sandbox import Sandbox, an_indexer

from foretell.indexer.follow import follow
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

BLOCKS = 12
BLOCKS_PER_RANGE = 3


async def index_by_one(sandbox: Sandbox, database: Database) -> dict[Any, Dump]:
    """Index block after block, and return the tables at each of them, by its number."""
    context = an_indexer(sandbox, database, blocks_per_range_max=1)
    dumps: dict[Any, Dump] = {None: await dump(database)}
    is_behind = True
    while is_behind:
        step = await follow(context)
        assert step.last is not None
        dumps[step.last.block_number] = await dump(database)
        is_behind = step.is_behind
    return dumps


def newest_block(tables: Dump) -> Any:
    numbers: list[Any] = [row[0] for row in tables["blocks"]]
    return max(numbers, default=None)


@pytest.mark.case("E-06")
async def test_a_reader_during_a_new_index_sees_one_block_in_every_table(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    for _ in range(BLOCKS):
        await rig.act()
    await rig.resolve()
    expected = await index_by_one(fresh_sandbox, database)
    await wipe(database)
    seen: list[Dump] = []

    async def read_on() -> None:
        while True:
            seen.append(await dump(database))
            await asyncio.sleep(0)

    reading = asyncio.create_task(read_on())
    context = an_indexer(fresh_sandbox, database, blocks_per_range_max=BLOCKS_PER_RANGE)
    try:
        while (await follow(context)).is_behind:
            seen.append(await dump(database))
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    seen.append(await dump(database))
    assert len({newest_block(tables) for tables in seen}) > BLOCKS // BLOCKS_PER_RANGE
    for tables in seen:
        assert tables == expected[newest_block(tables)]

import pytest
from tests.indexer.live import an_indexer, catch_up
from tests.sandbox import Sandbox

from foretell.indexer.health import fetch_lag, last_indexed
from foretell.store.database import Database

pytestmark = pytest.mark.anyio


async def test_nothing_is_indexed_before_the_first_look(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    assert await last_indexed(database) is None
    lag = await fetch_lag(an_indexer(fresh_sandbox, database), now_s=0)
    assert lag.last is None
    assert lag.behind_blocks == lag.head_number - fresh_sandbox.deployment.start_block + 1


async def test_the_lag_counts_blocks_that_are_not_indexed(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    services = an_indexer(fresh_sandbox, database)
    step = await catch_up(services)
    await fresh_sandbox.mine(3)
    lag = await fetch_lag(services, now_s=0)
    assert (lag.last, lag.behind_blocks) == (step.last, 3)
    assert lag.head_number == step.head_number + 3


async def test_a_node_that_stands_still_shows_by_the_age_of_its_head(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    services = an_indexer(fresh_sandbox, database)
    step = await catch_up(services)
    assert step.last is not None
    lag = await fetch_lag(services, now_s=step.last.timestamp_s + 90)
    assert (lag.behind_blocks, lag.head_age_s) == (0, 90)
    early = await fetch_lag(services, now_s=step.last.timestamp_s - 90)
    assert early.head_age_s == 0


async def test_the_last_indexed_block_is_the_chains(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    await catch_up(an_indexer(fresh_sandbox, database))
    header, last = await fresh_sandbox.reader.header(), await last_indexed(database)
    assert header is not None
    assert last == (
        header.block_number,
        header.block_hash,
        header.parent_hash,
        header.timestamp_s,
    )

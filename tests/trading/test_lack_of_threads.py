"""A trading API whose process cannot start a thread more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.rigs.trading import Trader, TradingRig, a_rig
from tests.rigs.values import a_buy
from tests.runtime.lack_of_threads import lack_of_threads

from foretell.store.public_reads.places import ReadKind

pytestmark = pytest.mark.anyio

READS = 20
HELD = (ReadKind.SUM, ReadKind.REPORT)
"""Reads that use all connections which are open, so that each read more needs a thread."""


@pytest.fixture
async def rig(database_file: Path, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """The product on a database of its own: no other test has opened connections of it."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market", "alice")
        yield rig


@pytest.mark.case("A-11")
async def test_without_new_threads_orders_go_on_and_reads_are_refused_with_the_cause(
    rig: TradingRig, alice: Trader
) -> None:
    """What was acknowledged stays, nothing else appears, and all reads work when there are threads again."""
    await alice.placed(a_buy("alice", salt="1"))
    async with AsyncExitStack() as held:
        for kind in HELD:
            await held.enter_async_context(rig.context.database.public_reading(kind))
        held.enter_context(lack_of_threads())
        placed = [await alice.place(a_buy("alice", salt=f"{n}")) for n in range(2, 5)]
        reads = await asyncio.gather(*[alice.send("GET", "/data/orders") for _ in range(READS)])
    refused = [answer.json() for answer in reads if answer.status_code != 200]
    assert {answer.status_code for answer in placed} == {200}
    assert {answer["code"] for answer in refused} == {"store_unavailable"}
    assert "the system starts no more threads" in refused[0]["message"]

    await rig.settle_tables()
    later = await asyncio.gather(*[alice.get("/data/orders") for _ in range(READS)])
    acknowledged = {answer.json()["orderID"] for answer in placed}
    for page in later:
        ids = [order["id"] for order in page["data"]]
        assert len(ids) == 4
        assert acknowledged < set(ids)

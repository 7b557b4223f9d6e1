"""The engine on a journal that another process may take over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.journals import PostgresJournals, query
from tests.rigs.values import a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.errors.exchange import EngineStopped
from foretell.domain.values.hexadecimal import word_bytes
from foretell.engine.writer.engine import Engine
from foretell.journal.port import PostgresJournalAddress
from foretell.journal.snapshot_process import take_snapshot_of_rows

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def an_engine(url: str) -> AsyncIterator[Engine]:
    engine = Engine(PostgresJournals(url).open("trading"), Clock().now_ms)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


def in_rows(engine: Engine) -> PostgresJournalAddress:
    address = engine.journal.begin_snapshot()
    assert isinstance(address, PostgresJournalAddress)
    return address


@contextlib.asynccontextmanager
async def a_trading_engine(url: str) -> AsyncIterator[Engine]:
    async with an_engine(url) as engine:
        await engine.submit(an_open_market())
        await engine.submit(some_funds("alice", "bob"))
        yield engine


async def test_the_next_leader_has_the_same_state(journal_url: str) -> None:
    async with a_trading_engine(journal_url) as engine:
        await engine.submit(a_placing(a_buy("alice", price_ticks=40)))
        await engine.submit(a_placing(a_sell("bob", price_ticks=40)))
        before, sequence = digest(engine.state), engine.sequence
    async with an_engine(journal_url) as engine:
        assert (digest(engine.state), engine.sequence) == (before, sequence)


async def test_the_next_leader_needs_only_the_newest_snapshot(journal_url: str) -> None:
    async with a_trading_engine(journal_url) as engine:
        for salt in range(6):
            await engine.submit(a_placing(a_buy("alice", price_ticks=40, salt=str(salt))))
            await asyncio.to_thread(take_snapshot_of_rows, in_rows(engine), engine.sequence)
            await engine.journal.compact()
        await engine.submit(a_placing(a_sell("bob", price_ticks=40)))
        before, sequence = digest(engine.state), engine.sequence
    rows = query(journal_url, "SELECT sequence FROM journal.record ORDER BY sequence")
    assert [row["sequence"] for row in rows] == [sequence - 1, sequence]
    async with an_engine(journal_url) as engine:
        assert (digest(engine.state), engine.sequence) == (before, sequence)


async def test_an_order_is_in_the_journal_under_its_hash(journal_url: str) -> None:
    command = a_placing(a_buy("alice"))
    async with a_trading_engine(journal_url) as engine:
        await engine.submit(command)
        await engine.submit(command)
    rows = query(journal_url, "SELECT command_id FROM journal.record ORDER BY sequence")
    assert [len(row["command_id"]) for row in rows] == [8, 8, 32]
    assert rows[-1]["command_id"] == word_bytes(command.order_id)


async def test_an_engine_that_lost_its_lease_refuses_waiting_and_later_commands(
    journal_url: str,
) -> None:
    async with a_trading_engine(journal_url) as engine:
        query(journal_url, "UPDATE journal.lease SET holder = 'other', epoch = epoch + 1")
        with pytest.raises(EngineStopped, match="the lease of shard 0 is lost"):
            await engine.submit(a_placing(a_buy("alice")))
        async with asyncio.timeout(60):
            await engine.failed.wait()
        with pytest.raises(EngineStopped):
            await engine.submit(a_placing(a_buy("bob")))
    ((count,),) = query(journal_url, "SELECT count(*) FROM journal.record")
    assert count == 2

"""Engines that may lead the same shard, stopped and killed while clients trade over HTTP."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.faults.led_rig import LedFaultRig, a_led_fault_rig
from tests.faults.processes import Processes
from tests.rigs.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("faults")]

ROUNDS = int(os.environ.get("FORETELL_TEST_CYCLES", "1"))
ANSWERS = 30


@pytest.fixture
async def exchange(
    made: Processes,
    tmp_path: Path,
    empty_database: Path,
    postgres: PostgresServer,
    journal_url: str,
) -> AsyncIterator[LedFaultRig]:
    await asyncio.to_thread(postgres.empty_database)
    async with a_led_fault_rig(tmp_path, empty_database, made, journal_url) as exchange:
        yield exchange


@pytest.mark.case("J-02")
async def test_a_leader_that_is_stopped_and_resumes_loses_and_doubles_nothing(
    exchange: LedFaultRig, played: Callable[[int], None]
) -> None:
    async with exchange.supervised():
        await exchange.leading()
        await exchange.start()
        trading = asyncio.create_task(exchange.trade_on())
        for _ in range(ROUNDS):
            await exchange.more_answers(ANSWERS)
            stopped = await exchange.leading()
            await stopped.signal(signal.SIGSTOP)
            await exchange.more_answers(ANSWERS)
            await stopped.signal(signal.SIGCONT)
            assert await stopped.ended() == 1
        await exchange.more_answers(ANSWERS)
        exchange.is_over = True
        await trading
        await exchange.check()
    played(ROUNDS)

"""Attacks by strangers: traders go on, memory is given back, and the log stays short (H1, H2, H5, M2, M3)."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest
from tests.faults.attacks.play import CONNECTIONS, MARKETS, Siege
from tests.faults.attacks.target import a_target
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e attacked")]

SCALE: Final = float(os.environ.get("FORETELL_TEST_ATTACKS", "0.02"))
"""1: as many connections as the report of the attacks had, and latencies that are judged."""
SECONDS: Final = 0.5 if SCALE < 1 else 10.0


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(tmp_path)
    await running.start()
    yield running
    running.stop()


async def test_beside_each_attack_orders_go_on_and_memory_is_given_back(
    running: Running, played: Callable[[int], None]
) -> None:
    async with a_target(running, round(MARKETS * SCALE)) as target:
        siege = await Siege.begin(target)
        for way, most in CONNECTIONS.items():
            outcome = await siege.endure(way, max(1, round(most * SCALE)), SECONDS)
            assert outcome.misses(is_whole=SCALE >= 1) == [], outcome
        assert await siege.misses() == [], running.output
    played(len(CONNECTIONS))

"""Attacks by strangers: traders go on, and memory is given back (H1, H2, H5, M2 of the attacks' report)."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from tests.faults.attacks import CONNECTIONS, MEMORY_RATIO_MAX, a_target
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e attacked")]

SCALE: Final = float(os.environ.get("FORETELL_TEST_ATTACKS", "0.02"))
"""1: as many connections as a determined stranger has."""
SECONDS: Final = 0.5 if SCALE < 1 else 10.0
ORDERS_MIN: Final = 3


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(tmp_path)
    await running.start()
    yield running
    running.stop()


async def test_beside_each_attack_orders_go_on_and_memory_is_given_back(running: Running) -> None:
    async with a_target(running) as target:
        await target.trade(SECONDS)
        for way, most in CONNECTIONS.items():
            outcome = await target.endure(way, max(1, round(most * SCALE)), SECONDS)
            assert outcome.beside.orders >= ORDERS_MIN, outcome
            assert outcome.after_bytes <= MEMORY_RATIO_MAX * outcome.before_bytes, outcome
    assert running.output.count("Traceback") == 0, running.output

"""The product served on loopback, and a stream of alice's orders and trades."""

from collections.abc import AsyncIterator

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.trading.rig import Listener, listening


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    async with serving(rig.app) as host:
        yield host


@pytest.fixture
async def alices(host: str, alice: Trader) -> AsyncIterator[Listener]:
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(alice)
        yield listener

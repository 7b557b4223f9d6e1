"""Trading's start and its loops: tables, expiries, heartbeats, announcements, revocations."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from foretell.trading.services import TradingServices

RETRY_S: Final = 1.0

log = structlog.get_logger(__name__)


async def start(services: TradingServices) -> None:
    """Replay the journal, after which commands are taken; or refuse one that the tables outran."""
    await services.projection.start()
    services.projection.check_journal(services.engine.journal_sequence)
    await services.engine.start()
    await services.heartbeats.start()
    await services.catalogue.load(services.board.market_by_id)


async def run(services: TradingServices) -> None:
    """Do, until cancelled, what no request waits for."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_forever("projection", services.projection.run))
        group.create_task(_forever("expiry", services.engine.expire))
        group.create_task(_forever("heartbeats", services.heartbeats.run))
        group.create_task(_forever("announcements", services.streams.announce))
        group.create_task(
            _forever("revocations", lambda: services.streams.follow_revocations(services.database))
        )


async def _forever(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await loop()
        except Exception:
            log.exception("loop broke off", loop=name)
            await asyncio.sleep(RETRY_S)

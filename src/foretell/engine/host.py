"""One engine, and what is made of it where it runs: the tables, and the answers to what it is asked."""

import asyncio
import time
from functools import partial
from typing import Final

from foretell.domain.errors.exchange import EngineBusy, EngineStopped
from foretell.domain.errors.storage import StoreUnavailable
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.allocations.reports import ChangedAllocations, report_allocations
from foretell.engine.answers import handle
from foretell.engine.protocol.requests import (
    CheckOrderRequest,
    EngineReply,
    EngineRequest,
    FundRequest,
    HeartbeatReply,
    HeartbeatRequest,
    PlaceRequest,
    ReportRequest,
    ShardRequest,
    TablesReply,
    TablesRequest,
)
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.projection import Projection
from foretell.engine.writer.tick_refiner import TickRefiner
from foretell.runtime.loops import Loop, restart_on_failure

TABLES_WAIT_S: Final = 5.0
TABLES_LOOK_S: Final = 0.002


class EngineHost:
    """An engine with its projection, and a purse when it is one of several; see `shards.Shard`."""

    def __init__(
        self,
        engine: Engine,
        projection: Projection,
        heartbeats: Heartbeats,
        allocation_client: AllocationClient | None = None,
    ) -> None:
        self.engine = engine
        self.allocation_client = allocation_client
        self.projection = projection
        self.heartbeats = heartbeats
        engine.subscribe(projection.on_committed)
        self._tick_refiner = TickRefiner(engine)
        engine.subscribe(self._tick_refiner.on_committed)
        self._changed_allocations: ChangedAllocations | None = None
        if allocation_client is not None:
            self._changed_allocations = ChangedAllocations()
            engine.subscribe(self._changed_allocations.on_committed)

    async def start(self) -> None:
        """Replay the journal, after which questions are answered; refuse one that the tables outran."""
        await self.projection.start()
        self.projection.check_journal(self.engine.journal_sequence)
        await self.engine.start(self.projection.sequence, self.projection.drain_if_large)
        await self.heartbeats.start()

    def loops(self) -> dict[str, Loop]:
        """Return what is to run, by name, while questions are answered; a journal's failure ends it."""
        return {
            "projection": partial(restart_on_failure, "projection", self.projection.run),
            "expiry": partial(restart_on_failure, "expiry", self.engine.expire),
            "ticks": partial(restart_on_failure, "ticks", self._tick_refiner.run),
            "heartbeats": partial(restart_on_failure, "heartbeats", self.heartbeats.run),
            "engine": self._watch,
        }

    async def _watch(self) -> None:
        await self.engine.failed.wait()
        raise EngineStopped("its journal failed; start again to go on from what is durable")

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the answer, durable if anything changed; or raise the refusal."""
        if isinstance(question, HeartbeatRequest):
            return HeartbeatReply(
                await self.heartbeats.beat(question.key_id, question.address, question.heartbeat_id)
            )
        if isinstance(question, TablesRequest):
            await self.wait_for_tables()
            return TablesReply()
        if isinstance(question, ReportRequest):
            return await report_allocations(self.engine, self._changed_allocations, question)
        assert not isinstance(question, FundRequest), "a treasury grants, not a shard"
        return await self._answer(question)

    async def _answer(self, question: ShardRequest) -> EngineReply:
        if isinstance(question, PlaceRequest) and self.projection.is_behind:
            raise EngineBusy
        if self.allocation_client is not None and isinstance(
            question, PlaceRequest | CheckOrderRequest
        ):
            return await self.allocation_client.answer(self.engine, question)
        return await handle(self.engine, question)

    async def wait_for_tables(self, within_s: float = TABLES_WAIT_S) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        wanted = self.engine.published_sequence
        deadline = time.monotonic() + within_s
        while self.projection.sequence < wanted:
            if time.monotonic() > deadline:
                raise StoreUnavailable("the tables are too far behind the journal")
            self.projection.flush_now()
            await asyncio.sleep(TABLES_LOOK_S)

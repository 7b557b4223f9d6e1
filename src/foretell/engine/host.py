"""One engine where it runs, with its tables, its clocks and the handlers of its requests."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from foretell.domain.errors.exchange import EngineBusy, EngineStopped
from foretell.domain.errors.families import Unavailable
from foretell.domain.errors.storage import JournalBehindTables, StoreUnavailable
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.allocations.reports import ChangedAllocations, report_allocations
from foretell.engine.answers import HANDLERS, begin_placing
from foretell.engine.protocol.endpoint import SettlePlacing
from foretell.engine.protocol.requests import (
    CheckOrderRequest,
    EngineReply,
    EngineRequest,
    HeartbeatReply,
    HeartbeatRequest,
    PlaceRequest,
    ReportReply,
    ReportRequest,
    TablesReply,
    TablesRequest,
)
from foretell.engine.settlement_lag import LAG_REFUSED_S, SettlementLag
from foretell.engine.writer.chain_lag import ChainLag
from foretell.engine.writer.clock_watch import ClockWatch
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.tables import Tables
from foretell.engine.writer.tick_refiner import TickRefiner
from foretell.runtime.loops import Loop
from foretell.runtime.worker import PollIntervals, run_worker

EXPIRY_PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)
TABLES_WAIT_S: Final = 5.0
TABLES_LOOK_S: Final = 0.002


class EngineHost:
    """An engine with its projection, and an allocation client when it is one of several."""

    def __init__(
        self,
        engine: Engine,
        projection: Tables,
        heartbeats: Heartbeats,
        allocation_client: AllocationClient | None = None,
        chain_lag: ChainLag | None = None,
        settlement_lag_s_max: int = LAG_REFUSED_S,
    ) -> None:
        self.engine = engine
        self.projection = projection
        self.heartbeats = heartbeats
        engine.subscribe(projection.on_committed)
        self._lag = SettlementLag(engine, settlement_lag_s_max)
        engine.due.is_behind_for = self._lag.refuses_release
        self._chain_lag = chain_lag
        self._clock = ClockWatch(lambda: engine.ahead_ms)
        self._tick_refiner = TickRefiner(engine)
        engine.subscribe(self._tick_refiner.on_committed)
        self._changed_allocations: ChangedAllocations | None = None
        if allocation_client is not None:
            self._changed_allocations = ChangedAllocations()
            engine.subscribe(self._changed_allocations.on_committed)
        self._has_treasury = allocation_client is not None
        self._handler_by_kind = self._handlers(allocation_client)

    def _handlers(
        self, allocation_client: AllocationClient | None
    ) -> Mapping[type[EngineRequest], Callable[[Any], Awaitable[EngineReply]]]:
        """Return the handler of each class of request, bound to this engine.

        One lookup leads to it: an order passes no other call between here and `Engine.submit`.
        """
        handlers = dict(HANDLERS)
        if allocation_client is not None:
            for kind in (PlaceRequest, CheckOrderRequest):
                handlers[kind] = partial(allocation_client.handle, HANDLERS[kind])
        return {
            **{kind: partial(handler, self.engine) for kind, handler in handlers.items()},
            HeartbeatRequest: self._beat,
            TablesRequest: self._reply_with_tables,
            ReportRequest: self._report,
        }

    async def start(self) -> None:
        """Replay the journal and begin to take requests; refuse a journal older than the tables."""
        await self.projection.start()
        try:
            await self._replay(self.projection.sequence)
        except BaseException:
            await self.projection.close()
            raise
        await self.heartbeats.start()

    async def close(self) -> None:
        """Take no more requests, make durable what was taken, and release the tables after that."""
        await self.engine.close()
        await self.projection.close()

    def loops(self) -> dict[str, Loop]:
        """Return the loops to run, by name, while requests are taken; a failed journal ends one."""
        loops: dict[str, Loop] = {
            "projection": self.projection.run,
            "expiry": self._expire_orders,
            "clock": self._clock.run,
            "ticks": self._tick_refiner.run,
            "heartbeats": self.heartbeats.run,
            "engine": self._watch,
        }
        if self._chain_lag is not None:
            loops["chain lag"] = self._chain_lag.run
        return loops

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply, durable if anything changed; or raise the refusal."""
        if isinstance(request, PlaceRequest) and (refusal := self._refusal_of(request)):
            raise refusal
        return await self._handler_by_kind[type(request)](request)

    def begin_placing(self, request: PlaceRequest, settle: SettlePlacing) -> bool:
        """Place an order without a coroutine; return False if it may need the treasury."""
        if self._has_treasury:
            return False
        if refusal := self._refusal_of(request):
            settle(refusal)
        else:
            begin_placing(self.engine, request, settle)
        return True

    def _refusal_of(self, request: PlaceRequest) -> Unavailable | None:
        """Return the refusal of an order while too much waits for the tables or the chain to take it.

        An order that was placed before gets its answer, however old the state of the chain is.
        """
        if self.projection.is_behind:
            return EngineBusy()
        if lag_refusal := self._lag.refusal_of(request.command):
            return lag_refusal
        if self._chain_lag is None:
            return None
        refusal = self._chain_lag.refusal
        if refusal and request.command.order_id not in self.engine.state.placement_by_order:
            return refusal
        return None

    async def wait_for_tables(self, within_s: float = TABLES_WAIT_S) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        wanted = self.engine.published_sequence
        deadline = time.monotonic() + within_s
        while self.projection.sequence < wanted:
            if time.monotonic() > deadline:
                raise StoreUnavailable("the tables are too far behind the journal")
            self.projection.flush_now()
            await asyncio.sleep(TABLES_LOOK_S)

    async def _replay(self, tables_sequence: int) -> None:
        journal_sequence = self.engine.journal_sequence
        if journal_sequence < tables_sequence:
            raise JournalBehindTables(tables_sequence, journal_sequence)
        await self.engine.start(tables_sequence, self.projection.drain_if_large)
        await self.projection.drain_if_large()

    async def _beat(self, request: HeartbeatRequest) -> HeartbeatReply:
        return HeartbeatReply(
            await self.heartbeats.beat(request.key_id, request.address, request.heartbeat_id)
        )

    async def _reply_with_tables(self, _: TablesRequest) -> TablesReply:
        await self.wait_for_tables()
        return TablesReply()

    async def _report(self, request: ReportRequest) -> ReportReply:
        return await report_allocations(self.engine, self._changed_allocations, request)

    async def _expire_orders(self) -> None:
        await run_worker("expiry", self.engine.expire, EXPIRY_PACE, expected=(Unavailable,))

    async def _watch(self) -> None:
        await self.engine.failed.wait()
        raise EngineStopped(
            "its journal failed; restart the process to continue from the last durable command"
        )

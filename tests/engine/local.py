"""Shards and a treasury in one process, asked as if they were elsewhere."""

from dataclasses import dataclass

from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.allocations.reports import report_allocations
from foretell.engine.answers import handle
from foretell.engine.protocol.requests import (
    EngineReply,
    EngineRequest,
    FundReply,
    FundRequest,
    HeartbeatRequest,
    ReportRequest,
    TablesRequest,
)
from foretell.engine.writer.engine import Engine


@dataclass(frozen=True)
class LocalShard:
    """An engine without tables and clients."""

    engine: Engine

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the engine's answer, or raise its refusal."""
        assert not isinstance(question, HeartbeatRequest | TablesRequest | FundRequest)
        if isinstance(question, ReportRequest):
            return await report_allocations(self.engine, None, question)
        return await handle(self.engine, question)


@dataclass(frozen=True)
class LocalTreasury:
    """A treasury without tables."""

    coordinator: AllocationCoordinator

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return what the treasury gives, or raise its refusal."""
        assert isinstance(question, FundRequest)
        return FundReply(
            await self.coordinator.fund(question.shard, question.wallet, question.given)
        )

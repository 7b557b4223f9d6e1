"""Shards and a treasury in one process, asked as if they were elsewhere."""

from dataclasses import dataclass

from foretell.engine.allocations.coordinator import Treasurer
from foretell.engine.allocations.reports import report_slices
from foretell.engine.answers import answer
from foretell.engine.protocol.requests import (
    Answer,
    AwaitTables,
    Beat,
    Fund,
    Funded,
    Question,
    ReportSlices,
)
from foretell.engine.writer.engine import Engine


@dataclass(frozen=True)
class LocalShard:
    """An engine without tables and clients."""

    engine: Engine

    async def ask(self, question: Question) -> Answer:
        """Return the engine's answer, or raise its refusal."""
        assert not isinstance(question, Beat | AwaitTables | Fund)
        if isinstance(question, ReportSlices):
            return await report_slices(self.engine, None, question)
        return await answer(self.engine, question)


@dataclass(frozen=True)
class LocalTreasury:
    """A treasury without tables."""

    treasurer: Treasurer

    async def ask(self, question: Question) -> Answer:
        """Return what the treasury gives, or raise its refusal."""
        assert isinstance(question, Fund)
        return Funded(await self.treasurer.fund(question.shard, question.wallet, question.given))

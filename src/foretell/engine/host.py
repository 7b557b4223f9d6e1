"""One engine, and what is made of it where it runs: the tables, and the answers to what it is asked."""

import asyncio
import time
from functools import partial
from typing import Final

from foretell.domain.errors.exchange import EngineBusy, EngineStopped
from foretell.domain.errors.storage import StoreUnavailable
from foretell.engine.allocations.client import Purse
from foretell.engine.allocations.reports import ChangedSlices, report_slices
from foretell.engine.answers import answer
from foretell.engine.protocol.requests import (
    Answer,
    AwaitTables,
    Beat,
    Beaten,
    BookQuestion,
    Fund,
    JudgeOrder,
    Place,
    Question,
    ReportSlices,
    TablesReady,
)
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.projection import Projection
from foretell.engine.writer.tick_refiner import TickWatch
from foretell.runtime.loops import Loop, forever

TABLES_WAIT_S: Final = 5.0
TABLES_LOOK_S: Final = 0.002


class Host:
    """An engine with its projection, and a purse when it is one of several; see `shards.Shard`."""

    def __init__(
        self,
        engine: Engine,
        projection: Projection,
        heartbeats: Heartbeats,
        purse: Purse | None = None,
    ) -> None:
        self.engine = engine
        self.purse = purse
        self.projection = projection
        self.heartbeats = heartbeats
        engine.hear(projection.hear)
        self._tick_watch = TickWatch(engine)
        engine.hear(self._tick_watch.hear)
        self._changed_slices: ChangedSlices | None = None
        if purse is not None:
            self._changed_slices = ChangedSlices()
            engine.hear(self._changed_slices.hear)

    async def start(self) -> None:
        """Replay the journal, after which questions are answered; refuse one that the tables outran."""
        await self.projection.start()
        self.projection.check_journal(self.engine.journal_sequence)
        await self.engine.start(self.projection.sequence, self.projection.relieve)
        await self.heartbeats.start()

    def loops(self) -> dict[str, Loop]:
        """Return what is to run, by name, while questions are answered; a journal's failure ends it."""
        return {
            "projection": partial(forever, "projection", self.projection.run),
            "expiry": partial(forever, "expiry", self.engine.expire),
            "ticks": partial(forever, "ticks", self._tick_watch.run),
            "heartbeats": partial(forever, "heartbeats", self.heartbeats.run),
            "engine": self._watch,
        }

    async def _watch(self) -> None:
        await self.engine.failed.wait()
        raise EngineStopped("its journal failed; start again to go on from what is durable")

    async def ask(self, question: Question) -> Answer:
        """Return the answer, durable if anything changed; or raise the refusal."""
        if isinstance(question, Beat):
            return Beaten(
                await self.heartbeats.beat(question.key_id, question.address, question.heartbeat_id)
            )
        if isinstance(question, AwaitTables):
            await self.wait_for_tables()
            return TablesReady()
        if isinstance(question, ReportSlices):
            return await report_slices(self.engine, self._changed_slices, question)
        assert not isinstance(question, Fund), "a treasury grants, not a shard"
        return await self._answer(question)

    async def _answer(self, question: BookQuestion) -> Answer:
        if isinstance(question, Place) and self.projection.is_behind:
            raise EngineBusy
        if self.purse is not None and isinstance(question, Place | JudgeOrder):
            return await self.purse.answer(self.engine, question)
        return await answer(self.engine, question)

    async def wait_for_tables(self, within_s: float = TABLES_WAIT_S) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        wanted = self.engine.told_sequence
        deadline = time.monotonic() + within_s
        while self.projection.sequence < wanted:
            if time.monotonic() > deadline:
                raise StoreUnavailable("the tables are too far behind the journal")
            self.projection.hurry()
            await asyncio.sleep(TABLES_LOOK_S)

"""Settlement in a child process, supervised by the process that serves.

The tables of the database are all that the two share. With SQLite, commits of one process wake no watch of
the other, so each passes on what it announced. The gas of failed settlements is counted here, where the metrics
are read. Nothing here waits for the child.
"""

import asyncio
import math
from functools import partial
from typing import Final, NamedTuple

import structlog

from foretell.app.framed_child import ChildProgram, FramedChild
from foretell.app.running import DEFAULT_LOGS, LogOptions
from foretell.app.settlement_process.messages import (
    Announced,
    BeginSettlement,
    FailedGas,
    FromSettlement,
    SettlementStarted,
    UnknownWaiting,
    decode_from_settlement,
    message,
)
from foretell.runtime.child_processes import RestartBackoff, run_supervised
from foretell.runtime.loops import run_together
from foretell.settlement.metrics import count_gas, count_unknown
from foretell.store.database import Database
from foretell.store.trading.trades import TOPIC as TRADES_TOPIC

NAME: Final = "settlement"
MODULE: Final = "foretell.app.settlement_process.process"
RELAY_IDLE_S: Final = 60.0

log = structlog.get_logger(__name__)


class SettlementLimits(NamedTuple):
    """Seconds between two looks at the process, its deadlines, and the pauses before it is started again."""

    check_every_s: float = 1.0
    begins_within_s: float = 120.0
    hangs_after_s: float = 60.0
    """A process that gives no sign of life for longer is killed."""
    restarts: RestartBackoff = RestartBackoff()


class SettlementProcess:
    """The process that settles, and what is passed on to it and from it."""

    def __init__(
        self,
        database: Database,
        begin: BeginSettlement,
        limits: SettlementLimits | None = None,
        logs: LogOptions = DEFAULT_LOGS,
    ) -> None:
        self._database = database
        self._begin = message(begin)
        self._limits = SettlementLimits() if limits is None else limits
        program = ChildProgram(NAME, MODULE, logs)
        self._child: FramedChild[FromSettlement] = FramedChild(
            program, decode_from_settlement, self._on_connected, self._on_message
        )
        self._overdue_at_s = math.inf
        self.started = asyncio.Event()
        """Whether a process has started to settle."""

    @property
    def process_id(self) -> int | None:
        """The id of the process, None while there is none."""
        return None if self._child.process is None else self._child.process.pid

    async def run(self) -> None:
        """Keep the process running until cancelled, then end it."""
        supervision = partial(run_supervised, NAME, self._child, self._limits.restarts)
        relay = [self._relay] if self._database.is_sqlite else []
        await run_together([supervision, self._watch, *relay])

    def _on_connected(self) -> None:
        self._overdue_at_s = asyncio.get_running_loop().time() + self._limits.begins_within_s
        self._child.send(self._begin)

    def _on_message(self, received: FromSettlement) -> None:
        self._overdue_at_s = asyncio.get_running_loop().time() + self._limits.hangs_after_s
        if isinstance(received, Announced):
            self._database.topics.wake(received.topics)
        elif isinstance(received, FailedGas):
            count_gas(received.blamed, received.gas)
        elif isinstance(received, UnknownWaiting):
            count_unknown(received.count)
        elif isinstance(received, SettlementStarted):
            self.started.set()

    async def _relay(self) -> None:
        """Have the process look for trades after each commit that wrote some, until cancelled."""
        wait = await self._database.watching(TRADES_TOPIC)
        announced = message(Announced((TRADES_TOPIC,)))
        while True:
            if await wait(RELAY_IDLE_S) and self._child.has_room:
                self._child.send(announced)

    async def _watch(self) -> None:
        """Kill a process that hangs, so that its supervisor starts another."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.check_every_s)
            if loop.time() > self._overdue_at_s:
                log.error("settlement process hangs and is killed")
                self._overdue_at_s = math.inf
                self._child.kill()

"""Snapshots of the journal: one is due after a given number of commands, and a process of its own makes it.

A snapshot is never ahead of the tables: commands that a snapshot replaces are removed from the journal, so
the tables must have them. A treasury has no tables, and its snapshots are never ahead of what is durable.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final, NamedTuple, Self

import structlog

from foretell.domain.errors.storage import JournalFailed, SnapshotFailed
from foretell.domain.treasury.folds import JournalKind
from foretell.journal import snapshot_process
from foretell.journal.port import Journal
from foretell.journal.snapshot_process import SnapshotJob, encode_job
from foretell.runtime.child_processes import RunLimits, run_once
from foretell.runtime.worker import PollIntervals, run_worker
from foretell.settings import Settings

PACE: Final = PollIntervals(busy_s=5.0, idle_s=5.0)
RETRY_S: Final = 60.0
"""The least pause after a failure: an attempt reads the journal since the last snapshot."""
DEADLINE_S: Final = 1_800.0
CAUSE_CHARS_MAX: Final = 500

log = structlog.get_logger(__name__)


class Schedule(NamedTuple):
    """The commands between two snapshots (0: no snapshots), and whether older commands are kept."""

    every: int
    keeps_all: bool = False
    deadline_s: float = DEADLINE_S
    retry_s: float = RETRY_S

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the schedule that the settings describe."""
        return cls(settings.snapshot_every, settings.journal_keeps == "all")


class Snapshots:
    """The snapshots of one journal."""

    def __init__(
        self,
        journal: Journal,
        published_sequence: Callable[[], int],
        schedule: Schedule,
        kind: JournalKind = JournalKind.SHARD,
    ) -> None:
        self._journal = journal
        self._published_sequence = published_sequence
        self.schedule = schedule
        self._kind = kind
        self._newest: int | None = None

    async def run(self) -> None:
        """Take the snapshots that are due until cancelled; one that fails is tried again later."""
        await run_worker(
            "snapshots",
            self.take_if_due,
            PACE,
            expected=(SnapshotFailed, JournalFailed),
            pause=self._pause,
        )

    async def take_if_due(self) -> bool:
        """Take a snapshot if enough commands came after the last, and return whether one was taken."""
        every, until = self.schedule.every, self._published_sequence()
        if not every or until < every:
            return False
        if self._newest is None:
            self._newest = await self._journal.snapshot_sequence()
        if until - self._newest < every:
            return False
        await self.take(until)
        self._newest = until
        count = await self._journal.compact(keeps_all=self.schedule.keeps_all)
        log.info("snapshot taken", sequence=until, removed=count)
        return True

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, self.schedule.retry_s))

    async def take(self, until: int) -> None:
        """Take the snapshot after a sequence, in a process that ends with this one."""
        job = SnapshotJob(address=self._journal.begin_snapshot(), until=until, kind=self._kind)
        deadline_s = self.schedule.deadline_s
        try:
            ended = await run_once(
                (sys.executable, "-m", snapshot_process.__name__),
                encode_job(job),
                RunLimits(deadline_s),
                keeps_input_open=True,
            )
        except TimeoutError:
            raise SnapshotFailed(f"it took longer than {deadline_s:g} s") from None
        except OSError as error:
            raise SnapshotFailed(f"no process could be started: {error.strerror}") from error
        if ended.code:
            cause = ended.errors[-CAUSE_CHARS_MAX:]
            raise SnapshotFailed(cause or f"the process ended with {ended.code}")

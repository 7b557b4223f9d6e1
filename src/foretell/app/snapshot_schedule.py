"""When the next snapshot of the journal is due, and the process that makes it.

A snapshot is never ahead of the tables: what a start lets out of the journal they must have. A
treasury has no tables, and its snapshots are never ahead of what is durable.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Final, NamedTuple, Self

import structlog

from foretell.domain.errors.storage import JournalFailed, SnapshotFailed
from foretell.domain.treasury.folds import JournalKind
from foretell.journal import snapshot_process
from foretell.journal.port import Journal
from foretell.journal.snapshot_process import SnapshotJob, encode_job
from foretell.settings import Settings

LOOK_S: Final = 5.0
RETRY_S: Final = 60.0
DEADLINE_S: Final = 1_800.0
COMPLAINT_CHARS_MAX: Final = 500

log = structlog.get_logger(__name__)


class Schedule(NamedTuple):
    """After how many commands the next snapshot is due, never if none, and what may go then."""

    every: int
    keeps_all: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return what the settings say."""
        return cls(settings.snapshot_every, settings.journal_keeps == "all")


class Snapshots:
    """Takes a snapshot of a journal whenever so many commands came after the last one."""

    def __init__(
        self,
        journal: Journal,
        published_sequence: Callable[[], int],
        schedule: Schedule,
        kind: JournalKind = JournalKind.SHARD,
    ) -> None:
        self._journal = journal
        self._published_sequence = published_sequence
        self._every = schedule.every
        self._keeps_all = schedule.keeps_all
        self._kind = kind
        self._newest: int | None = None

    async def run(self) -> None:
        """Take, for ever, the snapshots that are due; one that fails is tried again later."""
        while True:
            try:
                await self.take_if_due()
                await asyncio.sleep(LOOK_S)
            except (SnapshotFailed, JournalFailed) as failure:
                log.warning("snapshot failed", cause=failure.message)
                await asyncio.sleep(RETRY_S)

    async def take_if_due(self) -> bool:
        """Take a snapshot if enough commands came after the last, and say whether one was taken."""
        until = self._published_sequence()
        if not self._every or until < self._every:
            return False
        if self._newest is None:
            self._newest = await self._journal.snapshot_sequence()
        if until - self._newest < self._every:
            return False
        await self._take(until)
        self._newest = until
        count = await self._journal.compact(keeps_all=self._keeps_all)
        log.info("snapshot taken", sequence=until, let_go=count)
        return True

    async def _take(self, until: int) -> None:
        wanted = SnapshotJob(address=self._journal.begin_snapshot(), until=until, kind=self._kind)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            snapshot_process.__name__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(DEADLINE_S):
                complaint = await _end_of(process, encode_job(wanted))
        except TimeoutError:
            raise SnapshotFailed(f"it took longer than {DEADLINE_S:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode:
            raise SnapshotFailed(complaint or f"the process ended with {process.returncode}")


async def _end_of(process: asyncio.subprocess.Process, wanted: bytes) -> str:
    """Tell a process what to make, wait for its end, and return the last that it said."""
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(wanted)
    said = await process.stderr.read()
    await process.wait()
    return said.decode(errors="replace").strip()[-COMPLAINT_CHARS_MAX:]

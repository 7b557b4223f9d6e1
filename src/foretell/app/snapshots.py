"""When the next snapshot of the journal is due, and the process that makes it.

A snapshot is never ahead of the tables: what a start lets out of the journal they must have.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Final

import structlog

from foretell.domain.storage_errors import SnapshotFailed
from foretell.journal import snapshotting
from foretell.journal.file import FileJournal
from foretell.journal.snapshots import newest_sequence, remove_parts

LOOK_S: Final = 5.0
RETRY_S: Final = 60.0
DEADLINE_S: Final = 1_800.0
COMPLAINT_CHARS_MAX: Final = 500

log = structlog.get_logger(__name__)


class Snapshots:
    """Takes a snapshot whenever so many commands came after the last one."""

    def __init__(
        self, journal: FileJournal, projected_sequence: Callable[[], int], every: int
    ) -> None:
        self._journal = journal
        self._projected_sequence = projected_sequence
        self._every = every

    async def run(self) -> None:
        """Take, for ever, the snapshots that are due; one that fails is tried again later."""
        while True:
            try:
                await self.take_if_due()
                await asyncio.sleep(LOOK_S)
            except SnapshotFailed as failure:
                log.warning("snapshot failed", cause=failure.message)
                await asyncio.sleep(RETRY_S)

    async def take_if_due(self) -> bool:
        """Take a snapshot if enough commands came after the last, and say whether one was taken."""
        until = self._projected_sequence()
        if not self._every or until - newest_sequence(self._journal.folder) < self._every:
            return False
        await self._take(until)
        segments = await self._journal.let_go()
        log.info("snapshot taken", sequence=until, segments_let_go=segments)
        return True

    async def _take(self, until: int) -> None:
        remove_parts(self._journal.folder)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            snapshotting.__name__,
            str(self._journal.folder),
            str(until),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(DEADLINE_S):
                complaint = await _end_of(process)
        except TimeoutError:
            raise SnapshotFailed(f"it took longer than {DEADLINE_S:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode:
            raise SnapshotFailed(complaint or f"the process ended with {process.returncode}")


async def _end_of(process: asyncio.subprocess.Process) -> str:
    """Wait for a process to end, and return the last that it said."""
    assert process.stderr is not None
    said = await process.stderr.read()
    await process.wait()
    return said.decode(errors="replace").strip()[-COMPLAINT_CHARS_MAX:]

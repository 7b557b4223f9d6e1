"""The resources of one process from start to stop: acquired in order, released in the reverse order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from foretell.journal.files.folder_lock import lock_folder, unlock_folder


class Lifetime:
    """Resources, and the task that runs until the stop or until it fails."""

    def __init__(self) -> None:
        self.closing = contextlib.AsyncExitStack()
        self._running: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def starting(self) -> AsyncIterator[None]:
        """Release everything when the start fails."""
        try:
            yield
        except BaseException:
            await self.closing.aclose()
            raise

    def take_folder(self, folder: Path) -> None:
        """Keep other processes out of a data folder, or refuse."""
        folder.mkdir(parents=True, exist_ok=True)
        self.closing.callback(unlock_folder, lock_folder(folder))

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start the task; the stop cancels it before anything acquired earlier is released."""
        self._running = asyncio.create_task(work)
        self.closing.push_async_callback(self._end)
        return self._running

    async def wait(self) -> None:
        """Return when the task has ended, raising what ended it."""
        assert self._running is not None
        await asyncio.shield(self._running)

    async def stop(self) -> None:
        """Release everything, the last acquired first."""
        await self.closing.aclose()

    async def _end(self) -> None:
        assert self._running is not None
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._running

"""Trading in several processes of one machine: engines, and those who face clients.

This process only keeps the others running, and holds the port: connections that come while a server
is started again wait in its queue.
"""

import asyncio
import contextlib
from typing import Final

import httpx

from foretell.app.children import Child, keep
from foretell.app.engines import engine_children, same_arguments
from foretell.app.gateway import BACKLOG, bind
from foretell.domain.command_errors import NotInTime
from foretell.journal.locking import lock_folder, unlock_folder
from foretell.settings import Settings

START_DEADLINE_S: Final = 60.0
LOOK_S: Final = 0.05
LOOK_DEADLINE_S: Final = 2.0


class Fleet:
    """The processes of one machine that serve trading together."""

    def __init__(self, settings: Settings, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self._closing = contextlib.AsyncExitStack()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start every process, and return when the API answers."""
        try:
            self._take_folder()
            listener = bind(self._settings.host, self._settings.port, "FORETELL_PORT")
            listener.listen(BACKLOG)
            listener.set_inheritable(True)
            self._closing.callback(listener.close)
            self._running = asyncio.create_task(self._run(listener.fileno()))
            self._closing.push_async_callback(self._end)
            await self._answered()
        except BaseException:
            await self._closing.aclose()
            raise

    async def wait(self) -> None:
        """Return when keeping the processes has ended, raising what ended it."""
        assert self._running is not None
        await asyncio.shield(self._running)

    async def stop(self) -> None:
        """Stop every process, those that face clients first."""
        await self._closing.aclose()

    def _take_folder(self) -> None:
        self._settings.data.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(self._settings.data)
        self._closing.callback(unlock_folder, lock)

    async def _run(self, listener: int) -> None:
        facing = [
            Child(
                f"server {number}",
                ("serve", "trading", "--member", str(listener), *same_arguments(self._settings)),
                (listener,),
            )
            for number in range(self._workers)
        ]
        async with asyncio.TaskGroup() as group:
            for child in (*engine_children(self._settings, {}), *facing):
                group.create_task(keep(child))

    async def _end(self) -> None:
        assert self._running is not None
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running

    async def _answered(self) -> None:
        assert self._running is not None
        url = f"http://{self._settings.host}:{self._settings.port}/ok"
        try:
            async with asyncio.timeout(START_DEADLINE_S), httpx.AsyncClient() as client:
                while not self._running.done():
                    with contextlib.suppress(httpx.HTTPError):
                        if (await client.get(url, timeout=LOOK_DEADLINE_S)).is_success:
                            return
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise NotInTime("the trading API", START_DEADLINE_S) from None
        await self._running

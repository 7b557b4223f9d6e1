"""Trading in several processes of one machine: engines, and those who face clients.

This process only keeps the others running, and holds the port: connections that come while a server
is started again wait in its queue.
"""

import asyncio
import contextlib
from typing import Final

import httpx

from foretell.app.engine_processes import engine_children, same_arguments
from foretell.app.gateway import BACKLOG, bind
from foretell.app.lifetime import Lifetime
from foretell.domain.errors.command import NotInTime
from foretell.runtime.child_processes import Child, supervise
from foretell.settings import Settings

START_DEADLINE_S: Final = 60.0
LOOK_S: Final = 0.05
LOOK_DEADLINE_S: Final = 2.0


class Fleet:
    """The processes of one machine that serve trading together."""

    def __init__(self, settings: Settings, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self._lifetime = Lifetime()

    async def start(self) -> None:
        """Start every process, and return when the API answers."""
        async with self._lifetime.starting():
            self._lifetime.take_folder(self._settings.data)
            listener = bind(self._settings.host, self._settings.port, "FORETELL_PORT")
            listener.listen(BACKLOG)
            listener.set_inheritable(True)
            self._lifetime.closing.callback(listener.close)
            running = self._lifetime.run(self._run(listener.fileno()))
            await self._answered(running)

    async def wait(self) -> None:
        """Return when keeping the processes has ended, raising what ended it."""
        await self._lifetime.wait()

    async def stop(self) -> None:
        """Stop every process."""
        await self._lifetime.stop()

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
                group.create_task(supervise(child))

    async def _answered(self, running: asyncio.Task[None]) -> None:
        url = f"http://{self._settings.host}:{self._settings.port}/ok"
        try:
            async with asyncio.timeout(START_DEADLINE_S), httpx.AsyncClient() as client:
                while not running.done():
                    with contextlib.suppress(httpx.HTTPError):
                        if (await client.get(url, timeout=LOOK_DEADLINE_S)).is_success:
                            return
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise NotInTime("the trading API", START_DEADLINE_S) from None
        await running

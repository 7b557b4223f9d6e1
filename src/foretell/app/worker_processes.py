"""Trading in several processes of one machine: engines, and workers that answer clients.

This process only keeps the others running, and holds the port: connections that arrive while a worker is
started again wait in its queue.
"""

import asyncio
import contextlib
import signal
from functools import partial
from typing import Final

import httpx

from foretell.app.engine_processes import engine_children, same_arguments, supervision_loops
from foretell.app.gateway import BACKLOG, bind
from foretell.app.journals import check_places
from foretell.app.lifetime import Lifetime
from foretell.app.origin import check_shards
from foretell.domain.errors.command import NotInTime
from foretell.domain.errors.storage import StoreUnavailable
from foretell.runtime.child_processes import Child, ChildProcess, run_supervised
from foretell.runtime.loops import Loop, run_together
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade

START_DEADLINE_S: Final = 120.0
POLL_S: Final = 0.05
POLL_DEADLINE_S: Final = 2.0


class Fleet:
    """The processes of one machine that serve trading together."""

    def __init__(self, settings: Settings, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self._lifetime = Lifetime()
        self._answering: list[ChildProcess] = []

    async def start(self) -> None:
        """Start every process, and return when the API answers."""
        async with self._lifetime.starting():
            self._lifetime.take_folder(self._settings.data)
            listener = bind(self._settings.host, self._settings.port, "FORETELL_PORT")
            self._lifetime.closing.callback(listener.close)
            await self._check_shards()
            listener.listen(BACKLOG)
            listener.set_inheritable(True)
            workers = self._worker_children(listener.fileno())
            self._answering = [ChildProcess(child) for child in workers]
            loops: list[Loop] = [
                *supervision_loops(engine_children(self._settings, {})).values(),
                *(
                    partial(run_supervised, child.name, process)
                    for child, process in zip(workers, self._answering, strict=True)
                ),
            ]
            await self._until_answered(self._lifetime.run(run_together(loops)))

    def reload_limits(self) -> None:
        """Let every process that answers clients read its rate limits again."""
        for worker in self._answering:
            worker.send_signal(signal.SIGHUP)

    async def wait(self) -> None:
        """Return when the supervision has ended, raising what ended it."""
        await self._lifetime.wait()

    async def stop(self) -> None:
        """Stop every process."""
        await self._lifetime.stop()

    async def _check_shards(self) -> None:
        """Refuse another number of shards once, before each child does; one whose database is silent does it later."""
        settings = self._settings
        with contextlib.suppress(StoreUnavailable):
            async with Database(settings.database) as database:
                await upgrade(database)
                await check_shards(database, settings)
        await check_places(settings)

    def _worker_children(self, listener: int) -> list[Child]:
        arguments = (
            *("serve", "trading", "--member", "--listener", str(listener)),
            *same_arguments(self._settings),
        )
        return [
            Child(f"worker {number}", arguments, (listener,)) for number in range(self._workers)
        ]

    async def _until_answered(self, running: asyncio.Task[None]) -> None:
        """Return when the API answers; raise what ended the supervision before."""
        url = f"http://{self._settings.host}:{self._settings.port}/ok"
        try:
            async with asyncio.timeout(START_DEADLINE_S), httpx.AsyncClient() as client:
                while not running.done():
                    with contextlib.suppress(httpx.HTTPError):
                        if (await client.get(url, timeout=POLL_DEADLINE_S)).is_success:
                            return
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise NotInTime("the trading API", START_DEADLINE_S) from None
        await running

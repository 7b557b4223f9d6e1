"""Announcements of other processes, by PostgreSQL's LISTEN.

The connection is the listener's own. When it breaks, it is opened again after a pause, and every
watch is woken then, because announcements may have been missed in between.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import asyncpg
import sqlalchemy as sa

from foretell.domain.errors.storage import StoreUnavailable
from foretell.store.topics import Topics

RECONNECT_DELAY_S: Final = 1.0
CONNECT_DEADLINE_S: Final = 10.0

_LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # What the driver trips over when the line is cut while it speaks.
    asyncpg.InternalClientError,
)


class Listener:
    """One connection that hears announcements."""

    def __init__(self, url: sa.URL, topics: Topics) -> None:
        self._dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._topics = topics
        self._notified: dict[str, None] = {}
        self._connection: asyncpg.Connection | None = None
        self._lock = asyncio.Lock()
        self._reconnecting: asyncio.Task[None] | None = None

    async def listen(self, topics: Sequence[str]) -> None:
        """Hear these topics too."""
        async with self._lock:
            if self._connection is None:
                self._connection = await self._connect()
            connection = self._connection
            try:
                for topic in topics:
                    if topic not in self._notified:
                        await connection.add_listener(topic, self._hear)
                        self._notified[topic] = None
            except _LOST as error:
                raise StoreUnavailable(type(error).__name__) from error

    async def close(self) -> None:
        """Hear nothing more."""
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> asyncpg.Connection:
        try:
            connection = await asyncpg.connect(self._dsn, timeout=CONNECT_DEADLINE_S)
        except _LOST as error:
            raise StoreUnavailable(type(error).__name__) from error
        connection.add_termination_listener(self._lost)
        return connection

    def _hear(self, _connection: object, _pid: int, topic: str, _payload: object) -> None:
        self._topics.announce([topic])

    def _lost(self, _connection: object) -> None:
        if self._connection is None:
            return
        self._connection = None
        if self._reconnecting is None or self._reconnecting.done():
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        while True:
            with contextlib.suppress(StoreUnavailable):
                topics, self._notified = list(self._notified), {}
                try:
                    await self.listen(topics)
                except StoreUnavailable:
                    self._notified |= dict.fromkeys(topics)
                    raise
                self._topics.announce_all()
                return
            await asyncio.sleep(RECONNECT_DELAY_S)

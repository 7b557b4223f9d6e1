"""Announcements of other processes, by PostgreSQL's LISTEN.

The listener has a connection of its own. When it is lost, it is opened again after growing pauses, and
every watch is woken then, because announcements may have been missed in between.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import asyncpg
import sqlalchemy as sa

from foretell.domain.errors.storage import StoreUnavailable
from foretell.runtime.backoff import pauses_s
from foretell.runtime.failures import FailureLog
from foretell.store.topics import Topics

RECONNECT_S: Final = 0.25
RECONNECT_S_MAX: Final = 5.0
CONNECT_TIMEOUT_S: Final = 10.0

_LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # The driver raises this when the connection breaks during one of its own exchanges.
    asyncpg.InternalClientError,
)


class Listener:
    """One connection that receives announcements."""

    def __init__(
        self,
        url: sa.URL,
        topics: Topics,
        *,
        reconnect_s: float = RECONNECT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._topics = topics
        self._reconnect_s = reconnect_s
        self._connect_timeout_s = connect_timeout_s
        self._failures = FailureLog("database announcements")
        self._listened: dict[str, None] = {}
        self._connection: asyncpg.Connection | None = None
        self._lock = asyncio.Lock()
        self._reconnecting: asyncio.Task[None] | None = None

    async def listen(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics too."""
        async with self._lock:
            if self._connection is not None and self._connection.is_closed():
                self._on_lost(self._connection)
            if self._connection is None:
                self._connection = await self._connect()
            connection = self._connection
            try:
                for topic in topics:
                    if topic not in self._listened:
                        await connection.add_listener(topic, self._on_notified)
                        self._listened[topic] = None
            except _LOST as error:
                connection.terminate()
                self._on_lost(connection)
                raise StoreUnavailable(type(error).__name__) from error

    async def close(self) -> None:
        """Close the connection and stop reconnecting."""
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> asyncpg.Connection:
        try:
            connection = await asyncpg.connect(self._dsn, timeout=self._connect_timeout_s)
        except _LOST as error:
            raise StoreUnavailable(type(error).__name__) from error
        connection.add_termination_listener(self._on_lost)
        return connection

    def _on_notified(self, _connection: object, _pid: int, topic: str, _payload: object) -> None:
        self._topics.announce([topic])

    def _on_lost(self, connection: object) -> None:
        # Called by the driver, later than a call may notice it, and by that call.
        if self._connection is None or connection is not self._connection:
            return
        self._connection = None
        if self._reconnecting is None or self._reconnecting.done():
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        """Subscribe again to all topics, then wake every watch."""
        pauses = pauses_s(self._reconnect_s, max(self._reconnect_s, RECONNECT_S_MAX))
        while True:
            topics, self._listened = list(self._listened), {}
            try:
                await self.listen(topics)
            except StoreUnavailable as error:
                self._listened |= dict.fromkeys(topics)
                self._failures.failed(error, is_expected=True)
                await asyncio.sleep(next(pauses))
                continue
            self._failures.passed()
            self._topics.announce_all()
            return

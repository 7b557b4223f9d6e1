"""The WebSocket channels and their connections; the engine's effects are published to all at once.

Messages are made from effects that are durable, so a stream never shows what a crash could undo. A
message has the journal sequence of the command that caused it; a book has the sequence up to which
it is current.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import ForetellError
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import KeyRing
from foretell.engine.protocol.requests import CommittedCommand
from foretell.store.database import Database
from foretell.store.trading.api_keys import TOPIC, load_key
from foretell.trading.books.books import PublicBooks
from foretell.trading.books.market_names import MarketNames
from foretell.trading.streams.connection import (
    CLOSE_TRY_LATER,
    Connection,
    Handle,
    Socket,
    run_connection,
)
from foretell.trading.streams.market_channel import MarketChannel
from foretell.trading.streams.user_channel import UserChannel

CONNECTIONS_MAX: Final = 10_000
REVOCATIONS_CHECK_S: Final = 5.0

log = structlog.get_logger(__name__)


class Streams:
    """Both channels and their connections."""

    def __init__(
        self,
        *,
        books: PublicBooks,
        market_names: MarketNames,
        wallets: Wallets,
        key_ring: KeyRing,
        now_ms: Callable[[], int],
        new_uuid: Callable[[], str],
    ) -> None:
        self._now_ms = now_ms
        self._new_uuid = new_uuid
        self._key_ring = key_ring
        self.connections_max = CONNECTIONS_MAX
        self.market = MarketChannel(books, market_names, self._stamp)
        self.user = UserChannel(
            books, market_names.outcome, wallets, key_ring.check_credentials, self._stamp
        )
        self._announced = asyncio.Event()
        self._connections: set[Connection] = set()

    @property
    def connection_count(self) -> int:
        """The number of open connections, of both channels."""
        return len(self._connections)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Publish the effects of a command to the subscribers."""
        self.market.on_committed(committed)
        self.user.on_committed(committed)
        if self.market.announcements:
            self._announced.set()

    async def serve_market(self, socket: Socket) -> None:
        """Serve a connection of the market channel."""
        connection = Connection(self._new_uuid())
        self.market.join(connection)
        try:
            await self._serve(socket, connection, self.market.handle)
        finally:
            self.market.leave(connection)

    async def serve_user(self, socket: Socket) -> None:
        """Serve a connection of the user channel."""
        connection = Connection(self._new_uuid())
        try:
            await self._serve(socket, connection, self.user.handle)
        finally:
            self.user.leave(connection)

    def begin(self, is_theirs: Callable[[Bytes32], bool]) -> None:
        """Forget the orders and trades of some markets, whose engine publishes them again.

        Effects of the time in between are not known, so every client has to connect again.
        """
        self.user.forget(is_theirs)
        for connection in self._connections:
            connection.close(CLOSE_TRY_LATER)

    def revoke(self, key_id: str) -> None:
        """Close every connection that was opened with a key."""
        self.user.revoke(key_id)

    async def announce(self) -> None:
        """Publish, endlessly, the markets that open and resolve."""
        while True:
            await self._announced.wait()
            self._announced.clear()
            while self.market.announcements:
                try:
                    await self.market.announce(self.market.announcements.popleft())
                except ForetellError as error:
                    log.warning("announcement lost", cause=error.message)

    async def follow_revocations(
        self, database: Database, check_every_s: float = REVOCATIONS_CHECK_S
    ) -> None:
        """Close, endlessly, the connections of keys that another process revoked."""
        watch = await database.watch(TOPIC)
        while True:
            if await watch.wait(check_every_s):
                self._key_ring.forget_all()
            try:
                await self._drop_revoked(database)
            except ForetellError as error:
                log.warning("revocations could not be read", cause=error.message)

    async def _drop_revoked(self, database: Database) -> None:
        key_ids = self.user.key_ids()
        if key_ids:
            async with database.reading() as tx:
                keys = [(key_id, await load_key(tx, key_id)) for key_id in key_ids]
            for key_id, key in keys:
                if key is None or not key.is_active:
                    self.revoke(key_id)

    async def _serve(self, socket: Socket, connection: Connection, handle: Handle) -> None:
        if len(self._connections) >= self.connections_max:
            connection.close(CLOSE_TRY_LATER)
        self._connections.add(connection)
        try:
            await run_connection(socket, connection, handle)
        finally:
            self._connections.discard(connection)

    def _stamp(self, sequence: int) -> str:
        return f'"server_ts_ms":{self._now_ms()},"journal_sequence":{sequence},'

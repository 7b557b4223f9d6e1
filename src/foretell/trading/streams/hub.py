"""The WebSocket channels: who is connected, and what the engine did told to all of them at once.

Everything said comes from what the engine tells once it is durable, so a stream never shows what a
crash could undo. Each message bears the journal's sequence of the command that it tells of, and a
book the sequence that it is true at.
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
    converse,
)
from foretell.trading.streams.market_channel import MarketChannel
from foretell.trading.streams.user_channel import UserChannel

CONNECTIONS_MAX: Final = 10_000
LOOK_AGAIN_S: Final = 5.0

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
        self._market_names = market_names
        self._market = MarketChannel(books, market_names, self._stamp)
        self._user = UserChannel(
            books, market_names.outcome, wallets, key_ring.check_set, self._stamp
        )
        self._announced = asyncio.Event()
        self._connections: set[Connection] = set()

    def on_committed(self, committed: CommittedCommand) -> None:
        """Tell everyone what a command did."""
        self._market.on_committed(committed)
        self._user.on_committed(committed)
        if self._market.announcements:
            self._announced.set()

    async def serve_market(self, socket: Socket) -> None:
        """Hold a conversation on the market channel."""
        connection = Connection(self._new_uuid())
        self._market.join(connection)
        try:
            await self._serve(socket, connection, self._market.handle)
        finally:
            self._market.leave(connection)

    async def serve_user(self, socket: Socket) -> None:
        """Hold a conversation on the user channel."""
        connection = Connection(self._new_uuid())
        try:
            await self._serve(socket, connection, self._user.handle)
        finally:
            self._user.leave(connection)

    def begin(self, is_theirs: Callable[[Bytes32], bool]) -> None:
        """Forget the orders and trades of some markets, which are told anew.

        What happened in between is not known, so everyone who listens has to begin anew, too.
        """
        self._user.forget(is_theirs)
        for connection in self._connections:
            connection.close(CLOSE_TRY_LATER)

    def revoke(self, key_id: str) -> None:
        """End every connection that was opened with a key."""
        self._user.revoke(key_id)

    async def announce(self) -> None:
        """Tell, for ever, of markets that begin and end."""
        while True:
            await self._announced.wait()
            self._announced.clear()
            while self._market.announcements:
                try:
                    await self._market.announce(self._market.announcements.popleft())
                except ForetellError as error:
                    log.warning("announcement lost", cause=error.message)

    async def follow_revocations(
        self, database: Database, look_again_s: float = LOOK_AGAIN_S
    ) -> None:
        """End, for ever, what was opened with keys that another process revoked."""
        watch = await database.watch(TOPIC)
        while True:
            if await watch.wait(look_again_s):
                self._key_ring.forget_all()
            try:
                await self._drop_revoked(database)
            except ForetellError as error:
                log.warning("revocations unread", cause=error.message)

    async def _drop_revoked(self, database: Database) -> None:
        key_ids = self._user.key_ids()
        if key_ids:
            async with database.reading() as tx:
                keys = [(key_id, await load_key(tx, key_id)) for key_id in key_ids]
            for key_id, key in keys:
                if key is None or not key.is_active:
                    self.revoke(key_id)

    async def _serve(
        self,
        socket: Socket,
        connection: Connection,
        handle: Handle,
    ) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            connection.close(CLOSE_TRY_LATER)
        self._connections.add(connection)
        try:
            await converse(socket, connection, handle)
        finally:
            self._connections.discard(connection)

    def _stamp(self, sequence: int) -> str:
        return f'"server_ts_ms":{self._now_ms()},"journal_sequence":{sequence},'

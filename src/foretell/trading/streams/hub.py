"""The WebSocket channels and their connections; the engine's commands are published to all at once.

Messages are made from commands that are durable, so a stream never shows what a crash could undo. A
message has the journal sequence of the command that caused it; a book has the sequence up to which
it is current.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import Unavailable
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import KeyRing
from foretell.edge.throttle import ConnectionPlace
from foretell.engine.protocol.requests import CommittedCommand
from foretell.runtime.pauses import Pauses
from foretell.runtime.watch import Watch
from foretell.runtime.worker import PollIntervals, Wait, run_watching_worker, run_worker
from foretell.store.database import Database
from foretell.store.trading.api_keys import TOPIC
from foretell.trading.books.books import PublicBooks
from foretell.trading.books.market_names import MarketNames
from foretell.trading.streams.connection import (
    CLOSE_TRY_LATER,
    Connection,
    Handle,
    Socket,
)
from foretell.trading.streams.flush_queue import FlushQueue, SendBudget, in_turns
from foretell.trading.streams.live_channel import CHANNEL as LIVE_CHANNEL
from foretell.trading.streams.live_channel import LiveChannel
from foretell.trading.streams.login import authenticate_stream, client_of, is_key_active
from foretell.trading.streams.market_channel import CHANNEL as MARKET_CHANNEL
from foretell.trading.streams.market_channel import MarketChannel
from foretell.trading.streams.message_turns import MessageTurns
from foretell.trading.streams.open_streams import OpenStreams
from foretell.trading.streams.replay import ReplayPace
from foretell.trading.streams.run_connection import run_connection
from foretell.trading.streams.sports_channel import CHANNEL as SPORTS_CHANNEL
from foretell.trading.streams.sports_channel import SportsChannel
from foretell.trading.streams.user_channel import CHANNEL as USER_CHANNEL
from foretell.trading.streams.user_channel import UserChannel

CONNECTIONS_MAX: Final = 16_384
"""Not fewer than the places of a process, of which anonymous connections cannot have all."""
HEARTBEAT_S: Final = 10.0
SPORTS_PING_S: Final = 5.0
SPORTS_PACE: Final = PollIntervals(busy_s=0.0, idle_s=5.0)
REVOCATIONS_CHECK_S: Final = 5.0
ANNOUNCING_PACE: Final = PollIntervals(busy_s=0.0, idle_s=15.0)


class Streams:
    """The channels and their connections."""

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
        self.open = OpenStreams(now_ms)
        pauses = Pauses()
        self.market = MarketChannel(books, market_names, self.open, pauses)
        self.user = UserChannel(
            books, market_names.outcome, wallets, partial(authenticate_stream, key_ring), self.open
        )
        self.live = LiveChannel(market_names)
        self.sports = SportsChannel(market_names)
        self._announced = Watch()
        self._played = Watch()
        self._traded = Watch()
        self._connections: set[Connection] = set()
        self.replays = ReplayPace()
        self._budget = SendBudget(replays=self.replays)
        self._flush_queue = FlushQueue()
        self._message_turns = MessageTurns(pauses)

    @property
    def connection_count(self) -> int:
        """The number of open connections, of all channels."""
        return len(self._connections)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Publish a command to the subscribers."""
        self.market.on_committed(committed)
        self.user.on_committed(committed)
        self.live.on_committed(committed)
        self.sports.on_committed(committed)
        if self.market.announcements:
            self._announced.wake()
        if self.live.waiting:
            self._traded.wake()
        if self.sports.has_waiting:
            self._played.wake()

    async def serve_market(self, socket: Socket) -> None:
        """Serve a connection of the market channel."""
        connection = self._connection(MARKET_CHANNEL, socket)
        self.market.join(connection)
        try:
            await self._serve(socket, connection, self.market.handle)
        finally:
            self.open.part(connection, socket.client, self.market.leave)

    async def serve_user(self, socket: Socket, place: ConnectionPlace | None = None) -> None:
        """Serve a connection of the user channel; its place learns the account that it logs in to."""
        connection = self._connection(USER_CHANNEL, socket)

        async def handle(connection: Connection, text: str) -> None:
            await self.user.handle(connection, text)
            login = self.user.login_of(connection)
            if place is not None and login is not None:
                place.show_key(client_of(login))

        try:
            await self._serve(socket, connection, handle)
        finally:
            login = self.user.login_of(connection)
            client = "" if login is None else client_of(login)
            self.open.part(connection, client, self.user.leave)

    async def serve_live(self, socket: Socket) -> None:
        """Serve a connection of the live-data channel, which ends with its stream."""
        connection = self._connection(LIVE_CHANNEL, socket)
        self.live.join(connection)
        try:
            await self._serve(socket, connection, self.live.handle)
        finally:
            connection.end_stream()
            self.open.part(connection, "", self.live.leave)

    async def serve_sports(self, socket: Socket) -> None:
        """Serve a connection of the sports channel, which ends with its stream."""
        connection = self._connection(SPORTS_CHANNEL, socket)
        self.sports.join(connection)
        self._played.wake()
        try:
            await self._serve(socket, connection, self.sports.handle)
        finally:
            connection.end_stream()
            self.open.part(connection, "", self.sports.leave)

    def begin(self, is_theirs: Callable[[Bytes32], bool]) -> None:
        """Forget the orders and trades of some markets, whose engine publishes them again.

        Commands of the time in between are not known, so every client has to connect again.
        """
        self.user.forget(is_theirs)
        self.open.drop_kept()
        for connection in self._connections:
            connection.end_stream()
            connection.close(CLOSE_TRY_LATER)

    def revoke(self, key_id: str) -> None:
        """Close every connection that was opened with a key, and end its streams."""

        def is_of_key(kept: Connection) -> bool:
            login = self.user.login_of(kept)
            return login is not None and login.key_id == key_id

        self.open.drop_of(is_of_key)
        self.user.revoke(key_id)

    async def beat(self, beat_every_s: float = HEARTBEAT_S) -> None:
        """Send heartbeats, endlessly, to the connections that asked for them."""
        await run_worker("heartbeats", self._beat_once, PollIntervals(beat_every_s, beat_every_s))

    async def announce(self) -> None:
        """Publish, endlessly, the markets that open and resolve."""
        await run_worker(
            "announcements",
            self._announce_next,
            ANNOUNCING_PACE,
            self._announced.wait,
            expected=(Unavailable,),
        )

    async def publish_live(self) -> None:
        """Publish, endlessly, trades on the live-data channel."""
        await run_worker(
            "live data",
            self._publish_next,
            ANNOUNCING_PACE,
            self._traded.wait,
            expected=(Unavailable,),
        )

    async def publish_sports(self, database: Database) -> None:
        """Publish, endlessly, games on the sports channel."""

        async def publish_next() -> bool:
            return await self.sports.publish(database, self._now_ms())

        await run_worker(
            "sports", publish_next, SPORTS_PACE, self._played.wait, expected=(Unavailable,)
        )

    async def ping_sports(self, ping_every_s: float = SPORTS_PING_S) -> None:
        """Send pings, endlessly, on the sports channel."""

        async def ping_once() -> bool:
            await self.sports.ping()
            return False

        await run_worker("pings", ping_once, PollIntervals(ping_every_s, ping_every_s))

    async def follow_revocations(
        self, database: Database, check_every_s: float = REVOCATIONS_CHECK_S
    ) -> None:
        """Close, endlessly, the connections of keys that another process revoked."""
        await run_watching_worker(
            "revocations",
            partial(self._drop_revoked, database),
            PollIntervals(check_every_s, check_every_s),
            partial(self._watch_keys, database),
            expected=(Unavailable,),
        )

    async def _beat_once(self) -> bool:
        now_ms = self._now_ms()
        beating = [each for each in self._connections if each.has_heartbeat]
        async for connection in in_turns(beating):
            connection.beat(now_ms)
        return False

    async def _announce_next(self) -> bool:
        """Publish an announcement, and return whether more wait; one that fails is lost."""
        if self.market.announcements:
            await self.market.announce(self.market.announcements.popleft())
        return bool(self.market.announcements)

    async def _publish_next(self) -> bool:
        """Publish a trade, and return whether more wait; one that fails is lost."""
        if self.live.waiting:
            await self.live.publish(self.live.waiting.popleft())
        return bool(self.live.waiting)

    async def _watch_keys(self, database: Database) -> Wait:
        """Return a wait for revoked keys that empties their cache when it is woken."""
        wait = await database.watching(TOPIC)

        async def wait_and_forget(seconds: float) -> None:
            if await wait(seconds):
                self._key_ring.forget_all()

        return wait_and_forget

    async def _drop_revoked(self, database: Database) -> bool:
        key_ids = self.user.key_ids()
        if key_ids:
            async with database.reading() as tx:
                revoked = [each for each in key_ids if not await is_key_active(tx, each)]
            for key_id in revoked:
                self.revoke(key_id)
        return False

    def _connection(self, channel: str, socket: Socket) -> Connection:
        return Connection(
            self._new_uuid(),
            self._budget,
            flush_queue=self._flush_queue,
            channel=channel,
            client=socket.client,
        )

    async def _serve(self, socket: Socket, connection: Connection, handle: Handle) -> None:
        if len(self._connections) >= self.connections_max:
            connection.close(CLOSE_TRY_LATER)
        self._connections.add(connection)
        self.open.add(connection)
        try:
            await run_connection(socket, connection, handle, self._message_turns)
        finally:
            self._connections.discard(connection)

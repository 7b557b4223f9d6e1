"""Streams by their id: those with a connection, and for a while those that lost theirs.

A stream without a connection keeps its subscriptions and its newest messages, so that another connection of
its client can go on with it. Such streams are few, and when they have all places, the client with most of
them loses its oldest one. A client that closes its connection itself leaves none.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from foretell.domain.errors.streams import MalformedMessage, MessagesNotKept, UnknownStream
from foretell.trading.streams.connection import Connection
from foretell.trading.streams.recent import Message, RecentMessages
from foretell.trading.streams.replies import NotResumed

KEPT_FOR_S: Final = 60.0
KEPT_MAX: Final = 4_096

Leave = Callable[[Connection], None]
"""Removes a connection from its channel."""


class _KeptStream(NamedTuple):
    client: str
    leave: Leave
    end: asyncio.TimerHandle


class OpenStreams:
    """All streams that have messages."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        kept_for_s: float = KEPT_FOR_S,
        kept_max: int = KEPT_MAX,
    ) -> None:
        self.now_ms = now_ms
        self.kept_for_s = kept_for_s
        self._kept_max = kept_max
        self._recent = RecentMessages()
        self._by_id: dict[str, Connection] = {}
        self._kept: dict[Connection, _KeptStream] = {}
        self._kept_by_client: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def stamp(self, sequence: int) -> str:
        """Return the members that all messages of a command begin with, after their number."""
        return f'"server_ts_ms":{self.now_ms()},"journal_sequence":{sequence},'

    def message(self, sequence: int, text: str) -> Message:
        """Return a message of a command for any number of streams."""
        return self._recent.keep((self.stamp(sequence) + text).encode())

    @property
    def kept_count(self) -> int:
        """The number of streams without a connection."""
        return len(self._kept)

    def add(self, connection: Connection) -> None:
        """Add the stream of a new connection."""
        self._by_id[connection.stream_id] = connection

    def find(
        self,
        channel: str,
        stream_id: str,
        is_owner: Callable[[Connection], bool] = lambda _: True,
    ) -> Connection:
        """Return the present or the last connection of a stream, or refuse."""
        found = self._by_id.get(stream_id)
        if found is None or found.channel != channel or not found.may_be_resumed:
            raise UnknownStream
        if not is_owner(found):
            raise UnknownStream
        return found

    def find_any(self, stream_id: str) -> Connection:
        """Return the connection of a stream of any channel, or refuse."""
        found = self._by_id.get(stream_id)
        return self.find("" if found is None else found.channel, stream_id)

    def resume(
        self,
        connection: Connection,
        stream_id: str,
        after: int,
        *,
        is_first: bool,
        is_owner: Callable[[Connection], bool] = lambda _: True,
    ) -> Connection | None:
        """Have a connection go on with a stream, and return the former connection.

        When that is impossible, the client gets to know why, and None is returned: its message counts as
        an ordinary subscription.
        """
        if connection.is_resumed or not is_first:
            raise MalformedMessage("stream_id is for the first message of a connection")
        own_id = connection.stream_id
        try:
            former = self.find(connection.channel, stream_id, is_owner)
            connection.resume(former, after)
        except (UnknownStream, MessagesNotKept) as refusal:
            connection.send_struct(NotResumed(own_id, refusal.code, refusal.message))
            return None
        del self._by_id[own_id]
        self._by_id[stream_id] = connection
        self._unkeep(former)
        return former

    def part(self, connection: Connection, client: str, leave: Leave) -> None:
        """Keep the stream of a connection that has ended if it may be resumed, or remove it."""
        if self._by_id.get(connection.stream_id) is not connection:
            return  # another connection goes on with it
        if not connection.may_be_resumed or self.kept_for_s <= 0:
            self._remove(connection, leave)
            return
        connection.has_client = False
        if len(self._kept) >= self._kept_max:
            self._drop_one()
        loop = asyncio.get_running_loop()
        end = loop.call_later(self.kept_for_s, self._drop, connection)
        self._kept[connection] = _KeptStream(client, leave, end)
        self._kept_by_client.setdefault(client, {})[connection] = None

    def drop_kept(self) -> None:
        """Remove all streams that have no connection."""
        self.drop_of(lambda _: True)

    def drop_of(self, is_dropped: Callable[[Connection], bool]) -> None:
        """Remove some of the streams that have no connection."""
        for connection in [each for each in self._kept if is_dropped(each)]:
            self._drop(connection)

    def _drop_one(self) -> None:
        """Remove the oldest stream of the client that keeps most."""
        most = max(self._kept_by_client.values(), key=len)
        self._drop(next(iter(most)))

    def _drop(self, connection: Connection) -> None:
        kept = self._unkeep(connection)
        if kept is not None:
            self._remove(connection, kept.leave)

    def _remove(self, connection: Connection, leave: Leave) -> None:
        connection.end_stream()
        del self._by_id[connection.stream_id]
        leave(connection)

    def _unkeep(self, connection: Connection) -> _KeptStream | None:
        kept = self._kept.pop(connection, None)
        if kept is not None:
            kept.end.cancel()
            of_client = self._kept_by_client[kept.client]
            del of_client[connection]
            if not of_client:
                del self._kept_by_client[kept.client]
        return kept

"""Parts of sending that all connections of a process share: the turns in which they write, and a bound of their bytes.

Messages of one turn of the event loop go to a connection's socket together, in one write. A turn writes to some
connections only, so that orders which arrive meanwhile do not wait for all of them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol, TypeVar

from foretell.trading.streams.replay import ReplayPace

BYTES_QUEUED_BY_ALL_MAX: Final = 256 * 1024 * 1024
CONNECTIONS_PER_TURN: Final = 256


class Sending(Protocol):
    """A connection as it is seen here."""

    def flush_in_turn(self) -> None:
        """Write the messages that were published since the last time; the connection is not in the queue any more."""
        ...

    def overflow(self) -> None:
        """Drop what waits, and close."""
        ...


class Present(Protocol):
    """A connection that may end while others get their messages."""

    @property
    def is_present(self) -> bool:
        """Whether it has a client, and its stream goes on."""
        ...


Receiver = TypeVar("Receiver", bound=Present)


async def in_turns(
    connections: Sequence[Receiver], connections_per_turn: int = CONNECTIONS_PER_TURN
) -> AsyncIterator[Receiver]:
    """Yield connections, so many in a turn of the event loop, without those that have ended meanwhile.

    The loop has turned after the last of them, too, so that messages that follow each other take turns.
    """
    for number, connection in enumerate(connections, 1):
        if connection.is_present:
            yield connection
        if number % connections_per_turn == 0 or number == len(connections):
            await asyncio.sleep(0)


class FlushQueue:
    """Connections with messages that are not written yet, each once, in the order of their first message."""

    def __init__(self, connections_per_turn: int = CONNECTIONS_PER_TURN) -> None:
        self._connections_per_turn = connections_per_turn
        self._waiting: deque[Sending] = deque()
        self._is_due = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: Sending) -> None:
        """Have a connection flushed in one of the next turns; it adds itself once until then."""
        self._waiting.append(connection)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        waiting = self._waiting
        try:
            for _ in range(min(len(waiting), self._connections_per_turn)):
                waiting.popleft().flush_in_turn()
        finally:
            self._is_due = bool(waiting)
            if waiting:
                asyncio.get_running_loop().call_soon(self._flush)


class SendBudget:
    """The bytes that wait to be sent on all connections, by connection.

    Beyond the limit the connection with the most is closed, so slow readers pay for themselves.
    """

    def __init__(
        self, bytes_max: int = BYTES_QUEUED_BY_ALL_MAX, replays: ReplayPace | None = None
    ) -> None:
        self.replays = ReplayPace() if replays is None else replays
        """The pace of what is sent again."""
        self._bytes_max = bytes_max
        self._bytes_by_connection: dict[Sending, int] = {}
        self.bytes_queued = 0

    def add(self, connection: Sending, size: int) -> None:
        """Count bytes that a connection queues, or that it has sent if they are negative."""
        held = self._bytes_by_connection.get(connection, 0) + size
        assert held >= 0
        self.bytes_queued += size
        if held:
            self._bytes_by_connection[connection] = held
        else:
            self._bytes_by_connection.pop(connection, None)
        if size > 0 and self.bytes_queued > self._bytes_max:
            by_connection = self._bytes_by_connection
            max(by_connection, key=by_connection.__getitem__).overflow()

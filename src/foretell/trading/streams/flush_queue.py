"""Parts of sending that all connections of a process share: the turns in which they write, and a bound of their bytes.

Messages that wait for the turn of a connection go to its socket together, in one write. A turn has few connections, and
the next one comes after a pause that is as long as three of them, or nine of them where a client has several connections
in it, so that orders which arrive meanwhile do not wait for all connections. Clients take turns by connections: one with
many delays itself.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from foretell.runtime.pauses import Pauses
from foretell.trading.streams.replay import ReplayPace

BYTES_QUEUED_BY_ALL_MAX: Final = 256 * 1024 * 1024
CONNECTIONS_PER_TURN: Final = 16


class FlushLimits(NamedTuple):
    """Bounds of one turn over all connections, and of the share of time that turns take."""

    connections_per_turn: int = CONNECTIONS_PER_TURN
    turn_s: float = 0.0005
    """No connection begins to write later in a turn."""
    pause_factor: float = 3.0
    """The pause after a turn, in lengths of that turn."""
    crowd_pause_factor: float = 9.0
    """The same where a client had several connections in the turn: other clients wait for none of these."""
    pause_s_max: float = 0.015
    """Of one turn: a process that stood still in it does not hold all messages back."""


FLUSH_LIMITS: Final = FlushLimits()


class Sending(Protocol):
    """A connection as it is seen here."""

    client: str
    """Its address, empty if the connection is a client of its own."""

    def flush_in_turn(self) -> None:
        """Write messages that were published since the last time; the connection is not in the queue any more."""
        ...

    def overflow(self) -> None:
        """Drop what waits, and close."""
        ...


class Present(Protocol):
    """A connection that may end while others get their messages."""

    client: str

    @property
    def is_present(self) -> bool:
        """Whether it has a client, and its stream goes on."""
        ...


Receiver = TypeVar("Receiver", bound=Present)


async def in_turns(
    connections: Sequence[Receiver], connections_per_turn: int = CONNECTIONS_PER_TURN
) -> AsyncIterator[Receiver]:
    """Yield connections of each client in turn, so many in a turn of the event loop, without those that have ended meanwhile.

    The loop has turned after the last of them, too, so that messages that follow each other take turns.
    """
    for number, connection in enumerate(_by_clients_in_turn(connections), 1):
        if connection.is_present:
            yield connection
        if number % connections_per_turn == 0 or number == len(connections):
            await asyncio.sleep(0)


def _by_clients_in_turn(connections: Sequence[Receiver]) -> list[Receiver]:
    """Return the first connection of each client, then the second of each, and so on."""
    rounds: list[list[Receiver]] = []
    count_by_client: dict[str | Receiver, int] = {}
    for connection in connections:
        client = connection.client or connection
        number = count_by_client.get(client, 0)
        count_by_client[client] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(connection)
    return [each for one_of_each in rounds for each in one_of_each]


class FlushQueue:
    """Connections with messages that are not written yet, each once, by client and in the order of their first message."""

    def __init__(self, pauses: Pauses | None = None) -> None:
        """Other kinds of work may share the pauses."""
        self.limits = FLUSH_LIMITS
        self._pauses = pauses or Pauses()
        self._waiting: OrderedDict[str | Sending, deque[Sending]] = OrderedDict()
        """By client: the one that has waited longest for its turn is the first."""
        self._is_due = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, connection: Sending) -> None:
        """Have a connection flushed in one of the next turns; it adds itself once until then."""
        client = connection.client or connection
        of_client = self._waiting.get(client)
        if of_client is None:
            of_client = self._waiting[client] = deque()
        of_client.append(connection)
        if not self._is_due:
            self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._pauses.call_after(self._turn, self)

    def _turn(self) -> None:
        """Flush some connections, and pause in proportion to the time that it took."""
        now_s, limits = self._pauses.now_s, self.limits
        began_s, clients, is_crowd = now_s(), set[str | Sending](), False
        try:
            for _ in range(limits.connections_per_turn):
                connection = self._take()
                client = connection.client or connection
                is_crowd = is_crowd or client in clients
                clients.add(client)
                connection.flush_in_turn()
                if not self._waiting or now_s() - began_s >= limits.turn_s:
                    break
        finally:
            took_s = now_s() - began_s
            factor = limits.crowd_pause_factor if is_crowd else limits.pause_factor
            pause_s = min(factor * took_s, limits.pause_s_max)
            self._pauses.add(pause_s, took_s, self)
            self._is_due = False
            self._schedule()

    def _take(self) -> Sending:
        """Return the next connection of the client that has waited longest, and put the client behind the others."""
        client, connections = self._waiting.popitem(last=False)
        connection = connections.popleft()
        if connections:
            self._waiting[client] = connections
        return connection


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

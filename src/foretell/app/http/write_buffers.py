"""The write buffers of all connections, bounded in bytes: what clients do not read waits there.

A transport pauses writing when its buffer has more than a few kilobytes. From then on the buffer counts for its
client, until the client has read most of it. Dear reads have bounds of their own for what is not in a buffer yet:
see `app/read_process/unsent_answers.py`.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol

from foretell.app.http.connection_places import Place

BUFFERED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Of all connections of a process that have paused."""
BUFFERED_BYTES_BY_CLIENT_MAX: Final = 16 * 1024 * 1024

Client = str | Place
"""The address that a connection counts for; each connection of a proxy is a client of its own."""


class Buffer(Protocol):
    """The writing end of a connection."""

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the system has not taken."""


class _Paused:
    """A connection that has paused, and the bytes of its buffer when they were last read."""

    __slots__ = ("buffer", "size")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.size = 0


class WriteBuffers:
    """The buffers of the connections that have paused, in the order in which they did."""

    def __init__(
        self,
        bytes_max: int = BUFFERED_BYTES_MAX,
        client_bytes_max: int = BUFFERED_BYTES_BY_CLIENT_MAX,
    ) -> None:
        self._bytes_max = bytes_max
        self._client_bytes_max = client_bytes_max
        self._paused_by_client: dict[Client, dict[Place, _Paused]] = {}
        self._bytes_by_client: Counter[Client] = Counter()
        self.bytes_held = 0
        """As many as there were when the connections paused, or fewer: clients read in between."""

    def hold(self, place: Place, buffer: Buffer) -> None:
        """Count the buffer of a connection that pauses, until it is released.

        Beyond the bytes of its client the client's oldest connection is closed, unless it is the only one. Beyond
        those of all clients it is the oldest one of the client with most, so that nobody who reads loses an answer
        for others who do not.
        """
        self.release(place)
        client = place.client or place
        self._paused_by_client.setdefault(client, {})[place] = _Paused(buffer)
        self._measure(client, [place])
        if self._bytes_by_client[client] > self._client_bytes_max:
            self._bound_client(client)
        if self.bytes_held > self._bytes_max:
            self._bound_all()

    def release(self, place: Place) -> None:
        """Stop counting the buffer of a connection, which goes on or has ended; this may be repeated."""
        client = place.client or place
        paused = self._paused_by_client.get(client, {}).pop(place, None)
        if paused is None:
            return
        self._count(client, -paused.size)
        if not self._paused_by_client[client]:
            del self._paused_by_client[client], self._bytes_by_client[client]

    def _bound_client(self, client: Client) -> None:
        """Close connections of a client that holds too much, though not its newest one."""
        paused = self._paused_by_client[client]
        self._measure(client, paused)
        while self._bytes_by_client[client] > self._client_bytes_max and len(paused) > 1:
            self._close_oldest(client)

    def _bound_all(self) -> None:
        """Close connections of the clients with most while all hold too much."""
        measured = set[Client]()
        while self.bytes_held > self._bytes_max:
            client = max(self._bytes_by_client, key=self._bytes_by_client.__getitem__)
            if client in measured:
                self._close_oldest(client)
            else:
                self._measure(client, self._paused_by_client[client])
                measured.add(client)

    def _measure(self, client: Client, places: Iterable[Place]) -> None:
        """Read how much the buffers of connections have now."""
        for place in places:
            paused = self._paused_by_client[client][place]
            size = paused.buffer.get_write_buffer_size()
            self._count(client, size - paused.size)
            paused.size = size

    def _count(self, client: Client, more_bytes: int) -> None:
        self._bytes_by_client[client] += more_bytes
        self.bytes_held += more_bytes

    def _close_oldest(self, client: Client) -> None:
        oldest = next(iter(self._paused_by_client[client]))
        self.release(oldest)
        oldest.holder.close_now()


WRITE_BUFFERS: Final = WriteBuffers()

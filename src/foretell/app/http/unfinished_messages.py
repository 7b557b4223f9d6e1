"""The bytes that streams hold of messages that are not handled yet, bounded.

A client may send the beginning of a message and never its end, on every stream that it has. Beyond the bytes of a
client its stream that has held some for the longest time is closed. Beyond those of all clients it is the one of the
client with most, so that nobody who sends whole messages loses a stream for others who do not.
"""

from collections import Counter
from typing import Final, Protocol

from foretell.app.http.connection_places import Place

UNFINISHED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Of all streams of a process."""
UNFINISHED_BYTES_BY_CLIENT_MAX: Final = 32 * 1024 * 1024
"""As much as the sockets of a thousand streams have, or have read."""

Client = str | Place
"""The address that a stream counts for; each stream of a proxy is a client of its own."""


class UnfinishedStream(Protocol):
    """A stream that holds the beginning of a message."""

    def give_up(self) -> None:
        """Drop what is held, which is not counted any more, and close."""
        ...


class UnfinishedMessages:
    """The streams that hold bytes, by their client, in the order in which they began to."""

    def __init__(
        self,
        bytes_max: int = UNFINISHED_BYTES_MAX,
        client_bytes_max: int = UNFINISHED_BYTES_BY_CLIENT_MAX,
    ) -> None:
        self._bytes_max = bytes_max
        self._client_bytes_max = client_bytes_max
        self._sizes_by_client: dict[Client, dict[UnfinishedStream, int]] = {}
        self._bytes_by_client: Counter[Client] = Counter()
        self.bytes_held = 0

    def hold(self, place: Place, stream: UnfinishedStream, size: int) -> None:
        """Have a stream hold so many bytes, instead of those before; of none, it is forgotten.

        Streams are closed if that is too much; this one may be among them.
        """
        more = self._set(place.client or place, stream, size)
        if more > 0:
            self._bound(place.client or place)

    def _set(self, client: Client, stream: UnfinishedStream, size: int) -> int:
        """Count so many bytes of a stream, and return how many more these are."""
        sizes = self._sizes_by_client.setdefault(client, {})
        more = size - sizes.get(stream, 0)
        if size:
            sizes[stream] = size
        else:
            sizes.pop(stream, None)
        self.bytes_held += more
        self._bytes_by_client[client] += more
        if not sizes:
            del self._sizes_by_client[client], self._bytes_by_client[client]
        return more

    def _bound(self, client: Client) -> None:
        while self._bytes_by_client[client] > self._client_bytes_max:
            self._close_oldest(client)
        while self.bytes_held > self._bytes_max:
            by_client = self._bytes_by_client
            self._close_oldest(max(by_client, key=by_client.__getitem__))

    def _close_oldest(self, client: Client) -> None:
        oldest = next(iter(self._sizes_by_client[client]))
        self._set(client, oldest, 0)
        oldest.give_up()


UNFINISHED_MESSAGES: Final = UnfinishedMessages()

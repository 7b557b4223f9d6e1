"""Messages of one connection that wait to be written, as they are shared by all connections."""

from collections import deque
from collections.abc import Iterable

from foretell.domain.values.text_frames import frame_head


class Unsent:
    """Messages without their beginning, the oldest first; their bytes are those that other connections hold, too."""

    __slots__ = ("_tails", "size_bytes")

    def __init__(self) -> None:
        self._tails: deque[bytes] = deque()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._tails)

    def add(self, tail: bytes) -> None:
        """Add the newest message."""
        self._tails.append(tail)
        self.size_bytes += len(tail)

    def take(self, bytes_max: int) -> list[bytes]:
        """Return the oldest messages, as many as have so many bytes, but at least one if any waits."""
        waiting = self._tails
        if self.size_bytes <= bytes_max:
            tails = list(waiting)
            self.clear()
            return tails
        tails = [waiting.popleft()]
        size = len(tails[0])
        while waiting and size + len(waiting[0]) <= bytes_max:
            size += len(waiting[0])
            tails.append(waiting.popleft())
        self.size_bytes -= size
        return tails

    def clear(self) -> None:
        """Drop all messages."""
        self._tails.clear()
        self.size_bytes = 0


def frames_of(stream: bytes, first: int, tails: Iterable[bytes]) -> bytes:
    """Return messages as frames, each with its number, which begins at `first`, and the name of the stream."""
    parts = list[bytes]()
    for number, tail in enumerate(tails, first):
        head = b'{"sequence":%d%b' % (number, stream)
        parts += (frame_head(len(head) + len(tail)), head, tail)
    return b"".join(parts)

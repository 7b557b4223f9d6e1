"""Messages that a client missed, sent again in frames of bounded size and at a bounded pace.

Messages that are published meanwhile follow them, so that nothing comes before what was missed. A client can
resume a stream again and again; what it is sent again counts for its address, on all its connections together.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from foretell.runtime.allowance import GrowingAllowance
from foretell.runtime.lru import LruCache

FRAME_BYTES_MAX: Final = 64 * 1024
"""Of messages in one frame; a larger message has a frame of its own."""
HEAD_BYTES: Final = 128
"""More than the number and the stream's id take before a message, with the comma after it."""
CLIENTS_MAX: Final = 10_000
"""Clients whose bytes are counted; the one that resumed nothing for longest makes way."""


class ReplayLimits(NamedTuple):
    """Bounds of what one client is sent again, in bytes."""

    bytes_burst: float = 8.0 * 1024 * 1024
    """Eight streams with all that is kept."""
    bytes_per_s: float = 4.0 * 1024 * 1024


REPLAY_LIMITS: Final = ReplayLimits()


class ReplayPace:
    """The bytes that clients are sent again, by client."""

    def __init__(self, limits: ReplayLimits = REPLAY_LIMITS) -> None:
        self.limits = limits
        self._allowance_by_client: LruCache[str, GrowingAllowance] = LruCache(CLIENTS_MAX)

    def take(self, client: str, size: int, now_s: float) -> float:
        """Count bytes for a client, and return the seconds until it may have them."""
        allowance = self._allowance_by_client.get(client)
        if allowance is None:
            allowance = GrowingAllowance(*self.limits, now_s)
            self._allowance_by_client.put(client, allowance)
        return allowance.take(size, now_s)


class MissedFrame(NamedTuple):
    """Messages of one frame without their beginning, and the number of the first."""

    first: int
    tails: list[bytes]
    size: int


class Replay:
    """Messages of a stream without a gap, from a number on, that a client gets before all others."""

    __slots__ = ("_client", "_count", "_due_s", "_pace", "_tails", "next_number")

    def __init__(self, first: int, tails: Sequence[bytes], client: str, pace: ReplayPace) -> None:
        self.next_number = first
        self._tails = deque(tails)
        self._client, self._pace = client, pace
        self._count = 0
        """The messages of the next frame, once it counts."""
        self._due_s = 0.0

    def __len__(self) -> int:
        return len(self._tails)

    @property
    def size_bytes(self) -> int:
        """The bytes of all messages that wait."""
        return sum(map(len, self._tails))

    def extend(self, tails: Sequence[bytes]) -> None:
        """Add messages that were published after those before."""
        self._tails.extend(tails)

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the next frame may be sent; it counts when this is first asked."""
        if not self._count:
            self._count, size = self._next()
            self._due_s = now_s + self._pace.take(self._client, size, now_s)
        return self._due_s - now_s

    def take(self) -> MissedFrame:
        """Return the messages of the next frame, whose time has come."""
        assert self._count, "a frame counts before it is sent"
        first, tails = self.next_number, [self._tails.popleft() for _ in range(self._count)]
        self.next_number += self._count
        self._count = 0
        return MissedFrame(first, tails, sum(map(len, tails)))

    def _next(self) -> tuple[int, int]:
        """Return the number of messages in the next frame, and their bytes: at least one."""
        count, size = 1, len(self._tails[0]) + HEAD_BYTES
        for tail in islice(self._tails, 1, None):
            more = len(tail) + HEAD_BYTES
            if size + more > FRAME_BYTES_MAX:
                break
            count, size = count + 1, size + more
        return count, size

"""The newest messages of all streams, kept so that a client that comes back can have those it missed.

A message is kept once, however many streams have it: a stream holds references to its own newest ones, and a
message that no stream holds is gone. What is kept is bounded in number and bytes for a stream, and over all
streams of a process.
"""

import weakref
from collections import deque
from itertools import islice
from typing import Final

STREAM_MESSAGES_MAX: Final = 1_000
STREAM_BYTES_MAX: Final = 1024 * 1024
ALL_MESSAGES_MAX: Final = 200_000
ALL_BYTES_MAX: Final = 64 * 1024 * 1024
GONE_MAX: Final = 1_000
"""How many more references to messages that are gone are kept than there are messages."""


class Message:
    """A message for any number of streams, in bytes: an object without its beginning, which each stream has of its own.

    The bytes are None once they are not kept any more.
    """

    __slots__ = ("__weakref__", "size", "tail")

    def __init__(self, tail: bytes | None) -> None:
        self.tail = tail
        self.size = len(tail or b"")


NOT_KEPT: Final = Message(None)
"""Stands for a message of one stream only, such as a book after a subscription."""


class _Kept(weakref.ref[Message]):
    """A message, as long as a stream holds it, and its size in bytes."""

    __slots__ = ("size",)
    size: int


class RecentMessages:
    """The newest messages of the streams of a process, the oldest of which make way."""

    def __init__(
        self, messages_max: int = ALL_MESSAGES_MAX, bytes_max: int = ALL_BYTES_MAX
    ) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._kept: deque[_Kept] = deque()
        """The oldest first; of those that are gone the oldest are removed at once, others when they are the greater part."""
        self._held = 0
        self._on_gone = self._release
        self.bytes_kept = 0

    def __len__(self) -> int:
        return self._held

    @property
    def references(self) -> int:
        """The number of references to messages, including those that are gone."""
        return len(self._kept)

    def keep(self, tail: bytes) -> Message:
        """Return the message, which is kept while a stream holds it, until newer ones have its room."""
        message = Message(tail)
        kept = _Kept(message, self._on_gone)
        kept.size = message.size
        self._kept.append(kept)
        self._held += 1
        self.bytes_kept += message.size
        while self.bytes_kept > self._bytes_max or self._held > self._messages_max:
            self._drop_oldest()
        while self._kept and self._kept[0]() is None:
            self._kept.popleft()
        if len(self._kept) > 2 * self._held + GONE_MAX:
            self._kept = deque(each for each in self._kept if each() is not None)
        return message

    def _drop_oldest(self) -> None:
        oldest = self._kept.popleft()
        message = oldest()
        if message is not None:  # else its room was given back when it went
            message.tail = None
            self._held -= 1
            self.bytes_kept -= oldest.size

    def _release(self, gone: _Kept) -> None:
        """Give the room of a message back that no stream holds any more."""
        self._held -= 1
        self.bytes_kept -= gone.size


class StreamHistory:
    """The newest messages of one stream, whose sequence numbers have no gap."""

    __slots__ = ("_bytes", "_messages")

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._bytes = 0

    def append(self, message: Message) -> None:
        """Add the message with the next number; the oldest make way."""
        messages = self._messages
        messages.append(message)
        self._bytes += message.size
        while self._bytes > STREAM_BYTES_MAX or len(messages) > STREAM_MESSAGES_MAX:
            self._bytes -= messages.popleft().size

    def newest(self, count: int) -> list[bytes] | None:
        """Return the newest messages without their beginning, the oldest first; None if one is not kept."""
        if count > len(self._messages):
            return None
        start = len(self._messages) - count
        found = [each.tail for each in islice(self._messages, start, None) if each.tail is not None]
        return found if len(found) == count else None

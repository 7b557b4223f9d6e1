"""The newest messages of all streams, kept so that a client that comes back can have those it missed.

A message is kept once, however many streams have it: a stream holds references to its own newest ones.
What is kept is bounded in number and bytes for a stream, and over all streams of a process.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

STREAM_MESSAGES_MAX: Final = 1_000
STREAM_BYTES_MAX: Final = 1024 * 1024
ALL_MESSAGES_MAX: Final = 200_000
ALL_BYTES_MAX: Final = 64 * 1024 * 1024


class Message:
    """The text of a message: an object without its opening brace, after what all connections share.

    The text is None once it is not kept any more.
    """

    __slots__ = ("size", "stamp", "text")

    def __init__(self, stamp: str, text: str | None) -> None:
        self.stamp = stamp
        self.text = text
        self.size = len(stamp) + len(text or "")


NOT_KEPT: Final = Message("", None)
"""Stands for a message of one stream only, such as a book after a subscription."""


class RecentMessages:
    """The newest messages of a process, the oldest of which make way."""

    def __init__(
        self, messages_max: int = ALL_MESSAGES_MAX, bytes_max: int = ALL_BYTES_MAX
    ) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._messages: deque[Message] = deque()
        self.bytes_kept = 0

    def __len__(self) -> int:
        return len(self._messages)

    def keep(self, stamp: str, text: str) -> Message:
        """Return the message, which is kept until newer ones have its room."""
        message = Message(stamp, text)
        self._messages.append(message)
        self.bytes_kept += message.size
        while self.bytes_kept > self._bytes_max or len(self._messages) > self._messages_max:
            oldest = self._messages.popleft()
            oldest.text = None
            self.bytes_kept -= oldest.size
        return message


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

    def newest(self, count: int) -> list[tuple[str, str]] | None:
        """Return stamp and text of the newest messages, the oldest first; None if one is not kept."""
        if count > len(self._messages):
            return None
        start = len(self._messages) - count
        found = list(self._readable(start))
        return found if len(found) == count else None

    def _readable(self, start: int) -> Iterator[tuple[str, str]]:
        for index in range(start, len(self._messages)):
            message = self._messages[index]
            if message.text is not None:
                yield message.stamp, message.text

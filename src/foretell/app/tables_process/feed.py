"""The commands that the tables do not have yet, in frames, bounded in number and bytes.

A frame stays until the tables have all of it, so that it can be sent again to a new process. When
there is no room, the oldest frames are dropped; the process then reads their commands in the journal.
"""

from collections import deque
from typing import Final, NamedTuple

COMMANDS_MAX: Final = 50_000
BYTES_MAX: Final = 64 * 1024 * 1024


class FeedLimits(NamedTuple):
    """How many commands are kept at most, and of how many bytes."""

    commands_max: int = COMMANDS_MAX
    bytes_max: int = BYTES_MAX


class Frame(NamedTuple):
    """Commands as they are sent, their number, and the sequences before the first and of the last."""

    after: int
    last: int
    commands: int
    payload: bytes


class Feed:
    """Frames in order: first those that the process was sent, then the others."""

    def __init__(self, sequence: int, limits: FeedLimits | None = None) -> None:
        self._limits = FeedLimits() if limits is None else limits
        self._sent: deque[Frame] = deque()
        self._unsent: deque[Frame] = deque()
        self._commands = self._bytes = 0
        self._removed_sequence = sequence

    @property
    def is_sent(self) -> bool:
        """Whether every frame was sent."""
        return not self._unsent

    def is_complete_after(self, sequence: int) -> bool:
        """Return whether every command after a sequence is here."""
        return sequence >= self._removed_sequence

    def add(self, frame: Frame) -> bool:
        """Take the next frame; return False if one was dropped that the process was not sent."""
        self._unsent.append(frame)
        self._commands += frame.commands
        self._bytes += len(frame.payload)
        is_complete = True
        while self._commands > self._limits.commands_max or self._bytes > self._limits.bytes_max:
            is_complete = is_complete and bool(self._sent)
            self._remove_first()
        return is_complete

    def next_unsent(self) -> Frame | None:
        """Return the next frame to send, which then counts as sent."""
        if not self._unsent:
            return None
        frame = self._unsent.popleft()
        self._sent.append(frame)
        return frame

    def confirm(self, sequence: int) -> None:
        """Forget the frames that the tables have."""
        while (first := self._first()) is not None and first.last <= sequence:
            self._remove_first()

    def begin_again(self) -> None:
        """Count every frame as not sent: the process is a new one."""
        self._unsent.extendleft(reversed(self._sent))
        self._sent.clear()

    def _first(self) -> Frame | None:
        frames = self._sent or self._unsent
        return frames[0] if frames else None

    def _remove_first(self) -> None:
        frame = (self._sent or self._unsent).popleft()
        self._commands -= frame.commands
        self._bytes -= len(frame.payload)
        self._removed_sequence = frame.last

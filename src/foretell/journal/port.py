"""What every journal does, on one machine or many.

`append` gives a sequence number at once; the payload is durable when the journal says so through
`on_synced`, in order, and only then may anything be answered. When it cannot be made durable,
`on_failed` is told once, and nothing more will ever be synced by this journal.
"""

import enum
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol

import msgspec
from typing_extensions import override


class Entry(NamedTuple):
    """A payload that is durable, and its place."""

    sequence: int
    payload: bytes


class Snapshot(NamedTuple):
    """The state after a sequence, as whoever folds the payloads encodes it."""

    sequence: int
    payload: bytes


class InFolder(msgspec.Struct, frozen=True, tag="folder"):
    """Where another process finds a journal of files."""

    folder: str


class InRows(msgspec.Struct, frozen=True, tag="rows"):
    """Where another process finds a shard's journal in a database, and whose lease it is.

    The URL may hold a password: this goes through pipes, and never onto a command line or a log.
    """

    url: str
    shard: int
    holder: bytes

    @override
    def __repr__(self) -> str:
        """Return all but the URL."""
        return f"InRows(shard={self.shard!r}, holder={self.holder!r})"


JournalAddress = InFolder | InRows


class Capacity(enum.Enum):
    """How much more can be written.

    When it is scarce, what is written should be what frees others, such as cancels; when there is
    none, what was appended waits until there is.
    """

    AMPLE = "ample"
    SCARCE = "scarce"
    NONE = "none"


class Journal(Protocol):
    """A durable sequence of payloads with one writer."""

    @property
    def room(self) -> Capacity:
        """How much more can be written."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""

    def entries(self, after: int = 0) -> Generator[Entry, None, None]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged."""

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot that is whole, if there is one.

        A damaged one is passed over for the one before, if the entries after that still exist;
        else it raises JournalDamaged.
        """

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep the state after a sequence that is durable; it is durable when this returns.

        Then let go of the entries that the two newest snapshots do not need.
        """

    async def snapshot_sequence(self) -> int:
        """Return the sequence of the newest snapshot, whole or not; 0 when there is none."""

    def begin_snapshot(self) -> JournalAddress:
        """Return where another process, one at a time, makes the next snapshot of what is durable.

        What was left of one that was not finished is removed.
        """

    async def let_go(self, *, keeps_all: bool = False) -> int:
        """Let go of what the two newest snapshots do not need; return how much of it there was.

        With `keeps_all` that is older snapshots alone, and nothing of the journal itself.
        """

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""

    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take a payload and return its sequence; it is not durable yet.

        A command id is in a journal once: one that can tell refuses to keep it again, and fails.
        One that is empty or too large is a fault of ours: it raises at once and changes nothing.
        """

    async def close(self) -> None:
        """Make durable what was appended, and let go."""

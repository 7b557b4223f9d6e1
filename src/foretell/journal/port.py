"""The interface of a journal, on one machine or many.

`append` returns a sequence number at once. The payload is durable when `on_synced` is called with
that sequence or a later one, and only then may a reply be sent. When it cannot be made durable,
`on_failed` is called once, and this journal syncs nothing more.
"""

import enum
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol

import msgspec
from typing_extensions import override

from foretell.domain.values.sharding import ShardNumber


class Entry(NamedTuple):
    """A durable payload and its sequence."""

    sequence: int
    payload: bytes


class Snapshot(NamedTuple):
    """The state after a sequence, encoded by the owner of the payloads."""

    sequence: int
    payload: bytes


class FileJournalAddress(msgspec.Struct, frozen=True, tag="folder"):
    """The address of a journal in files, for another process."""

    folder: str


class PostgresJournalAddress(msgspec.Struct, frozen=True, tag="rows"):
    """The address of a shard's journal in a database, for another process, with the lease's holder.

    The URL may hold a password: it goes through pipes, never onto a command line or into a log.
    """

    url: str
    shard: ShardNumber
    holder: bytes

    @override
    def __repr__(self) -> str:
        """Return all but the URL."""
        return f"PostgresJournalAddress(shard={self.shard!r}, holder={self.holder!r})"


JournalAddress = FileJournalAddress | PostgresJournalAddress


class Capacity(enum.Enum):
    """How much more can be written.

    While it is scarce, only payloads that release funds should be written, such as cancels; while
    there is none, appended payloads wait.
    """

    AMPLE = "ample"
    SCARCE = "scarce"
    NONE = "none"


class Journal(Protocol):
    """A durable sequence of payloads with one writer."""

    @property
    def capacity(self) -> Capacity:
        """How much more can be written."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""

    @property
    def identity(self) -> str:
        """The id that no other journal has, 32 hexadecimal digits; a copy has the same."""

    @property
    def address(self) -> JournalAddress:
        """Where another process reads it."""

    def entries(self, after: int = 0) -> Generator[Entry, None, None]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged."""

    def snapshot(self, until: int | None = None) -> Snapshot | None:
        """Return the newest intact snapshot that is not after a sequence, if there is one.

        A damaged one is skipped for the one before, if the entries after that still exist;
        otherwise it raises JournalDamaged.
        """

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep the state after a durable sequence; it is durable when this returns.

        Then remove the entries that the two newest snapshots do not need.
        """

    async def snapshot_sequence(self) -> int:
        """Return the sequence of the newest snapshot, intact or not; 0 when there is none."""

    def begin_snapshot(self) -> JournalAddress:
        """Return the address at which another process, one at a time, takes the next snapshot.

        The remains of an unfinished one are removed.
        """

    async def compact(self, *, keeps_all: bool = False) -> int:
        """Remove what the two newest snapshots do not need; return how many segments or entries.

        With `keeps_all` remove older snapshots alone, and nothing of the journal itself.
        """

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""

    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take a payload and return its sequence; it is not durable yet.

        A command id may be in a journal once: a journal that checks it fails on a second one. A
        payload that is empty or too large raises at once and changes nothing.
        """

    async def close(self) -> None:
        """Make durable what was appended, and release the journal."""

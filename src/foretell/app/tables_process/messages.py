"""Messages between an engine and the process that writes its tables.

The engine begins, waits for `Started`, and then sends commands in frames. Each frame names the sequence of
the command before its first, so that no command can be missed.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from foretell.domain.exchange.commands import OpenMarket
from foretell.engine.protocol.decided import DecidedCommand
from foretell.engine.protocol.framing import framed
from foretell.journal.port import FileJournalAddress, PostgresJournalAddress


class Begin(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """The database to write to, under which name, and the journal to catch up from.

    The URL may hold a password, which is why it comes here and not on the command line.
    """

    url: str
    name: str
    journal: FileJournalAddress | PostgresJournalAddress


class Markets(msgspec.Struct, frozen=True, array_like=True, tag="markets"):
    """Markets whose trades may come."""

    markets: Sequence[OpenMarket]


class Commands(msgspec.Struct, frozen=True, array_like=True, tag="commands"):
    """Commands in order; `after` is the sequence of the one before the first."""

    after: int
    commands: Sequence[DecidedCommand]


class ReplayJournal(msgspec.Struct, frozen=True, array_like=True, tag="replay"):
    """Commands up to a durable sequence are to be read from the journal, since they do not come."""

    until: int


class Flush(msgspec.Struct, frozen=True, array_like=True, tag="flush"):
    """A request waits: write what came without gathering more."""


class Started(msgspec.Struct, frozen=True, array_like=True, tag="started"):
    """The sequence that the tables are at."""

    sequence: int


class Wrote(msgspec.Struct, frozen=True, array_like=True, tag="wrote"):
    """The sequence that the tables are at now, and the topics that the write announced."""

    sequence: int
    topics: Collection[str]


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """The process works, even if its database does not answer."""


class _EncodedCommands(msgspec.Struct, frozen=True, array_like=True, tag="commands"):
    """`Commands`, each of them encoded when it was published."""

    after: int
    commands: Sequence[msgspec.Raw]


ToTables = Begin | Markets | Commands | ReplayJournal | Flush
FromTables = Started | Wrote | Alive

_ENCODER: Final = msgspec.msgpack.Encoder()
_TO_TABLES: Final[msgspec.msgpack.Decoder[ToTables]] = msgspec.msgpack.Decoder(ToTables)
_FROM_TABLES: Final[msgspec.msgpack.Decoder[FromTables]] = msgspec.msgpack.Decoder(FromTables)


def frame_of(after: int, commands: Sequence[msgspec.Raw]) -> bytes:
    """Return the frame of encoded commands."""
    return framed(_ENCODER.encode(_EncodedCommands(after, commands)))


def message(content: ToTables | FromTables) -> bytes:
    """Return a message as it is sent."""
    return framed(_ENCODER.encode(content))


def decode_to_tables(received: bytes) -> ToTables:
    """Return a message of the engine."""
    return _TO_TABLES.decode(received)


def decode_from_tables(received: bytes) -> FromTables:
    """Return a message of the process."""
    return _FROM_TABLES.decode(received)

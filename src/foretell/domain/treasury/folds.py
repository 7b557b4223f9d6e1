"""Replay of a journal into its state, for callers that treat shards and the treasury alike."""

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import decode_command
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import State
from foretell.domain.treasury.commands import decode_treasury_command
from foretell.domain.treasury.snapshot import decode_treasury, encode_treasury
from foretell.domain.treasury.treasury import Treasury, apply_to_treasury


class JournalFold(Protocol):
    """A state to which the payloads of a journal are applied in order."""

    def take(self, payload: bytes) -> None:
        """Apply the next payload of the journal."""

    def encode(self) -> bytes:
        """Return the state as the bytes of a snapshot."""


class ShardFold:
    """The state of a shard, from the bytes of a snapshot or empty."""

    def __init__(self, raw: bytes | None) -> None:
        self.state = State() if raw is None else decode_state(raw)
        self.state.tracks_book_changes = False

    def take(self, payload: bytes) -> None:
        """Apply the next payload of the journal."""
        apply(self.state, decode_command(payload))

    def encode(self) -> bytes:
        """Return the state as the bytes of a snapshot."""
        return encode_state(self.state)


class TreasuryFold:
    """The state of the treasury, from the bytes of a snapshot or empty."""

    def __init__(self, raw: bytes | None) -> None:
        self.treasury = Treasury() if raw is None else decode_treasury(raw)

    def take(self, payload: bytes) -> None:
        """Apply the next payload of the journal."""
        apply_to_treasury(self.treasury, decode_treasury_command(payload))

    def encode(self) -> bytes:
        """Return the state as the bytes of a snapshot."""
        return encode_treasury(self.treasury)


class JournalKind(enum.StrEnum):
    """The owner of a journal: a shard or the treasury."""

    SHARD = "shard"
    TREASURY = "treasury"


FOLD_BY_KIND: Final[Mapping[JournalKind, Callable[[bytes | None], JournalFold]]] = MappingProxyType(
    {JournalKind.SHARD: ShardFold, JournalKind.TREASURY: TreasuryFold}
)

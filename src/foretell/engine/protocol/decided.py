"""Committed commands as they cross to another process: what was decided, not its effects.

The receiver makes the effects that it needs, of the command as the journal has it and the decision.
"""

from typing import Final

import msgspec

from foretell.domain.exchange.apply import Outcome
from foretell.domain.exchange.commands import decode_command
from foretell.domain.exchange.decision import Decision, Done
from foretell.engine.protocol.requests import CommittedCommand, committed_effects


class DecidedCommand(msgspec.Struct, frozen=True, array_like=True):
    """A command as the journal has it, and what was decided; a `Done` needs the digest of its command alone."""

    sequence: int
    payload: bytes
    decision: Decision
    digest: bytes = b""


_ENCODER: Final = msgspec.msgpack.Encoder()


def decided_of(committed: CommittedCommand) -> DecidedCommand:
    """Return a command as it is sent."""
    decision = committed.decision
    if isinstance(decision, Done):
        return DecidedCommand(committed.sequence, b"", decision, committed.digest)
    return DecidedCommand(committed.sequence, committed.payload, decision)


def encode_committed(committed: CommittedCommand) -> msgspec.Raw:
    """Return a command as a part of a message."""
    return msgspec.Raw(_ENCODER.encode(decided_of(committed)))


def committed_of(decided: DecidedCommand) -> CommittedCommand:
    """Return a command that was received, as the engine published it."""
    decision = decided.decision
    if isinstance(decision, Done):
        return committed_effects(decided.sequence, decision.effects, decided.digest)
    command = decode_command(decided.payload)
    outcome = Outcome(None, None, is_change=True, command=command, _decision=decision)
    return CommittedCommand(decided.sequence, outcome, decided.payload)

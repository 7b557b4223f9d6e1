"""The replay of a journal for tables that are behind it, while the engine goes on.

It begins with the newest snapshot that is not after them, applies silently what the tables have, and gives the
outcome of every command after that. The state stays, so that the next part of the journal costs no replay from the
snapshot.
"""

from collections.abc import Iterator

from foretell.domain.errors.storage import JournalDamaged, TablesBehindSnapshot
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import decode_command
from foretell.domain.exchange.snapshot import decode_state
from foretell.domain.exchange.state import State
from foretell.engine.protocol.requests import CommittedCommand
from foretell.journal.access import entries_at, newest_snapshot_at
from foretell.journal.port import JournalAddress


class CatchUp:
    """A state of the journal, and its sequence."""

    def __init__(self, address: JournalAddress, tables_sequence: int) -> None:
        """Begin with the newest snapshot that is not newer than the tables, or with nothing.

        Refuses tables that lack commands which were removed from the journal.
        """
        self._address = address
        self._tables_sequence = tables_sequence
        self._state, self._sequence = State(), 0
        snapshot = newest_snapshot_at(address, tables_sequence)
        if snapshot is not None:
            self._state, self._sequence = decode_state(snapshot.payload), snapshot.sequence
            return
        newest = newest_snapshot_at(address)
        if newest is None:
            return
        try:
            next(entries_at(address, 0, 1), None)
        except JournalDamaged as damage:
            raise TablesBehindSnapshot(tables_sequence, newest.sequence) from damage

    def committed(self, until: int) -> Iterator[CommittedCommand | None]:
        """Yield each command up to a durable sequence as the engine published it.

        None stands for a command that the tables have, or that changed none of them: the caller may
        stop for a moment after each. The last one has the sequence `until`.
        """
        state, last = self._state, self._sequence
        state.tracks_book_changes = last >= self._tables_sequence
        for entry in entries_at(self._address, last, until):
            outcome = apply(state, decode_command(entry.payload))
            self._sequence = entry.sequence
            if entry.sequence == self._tables_sequence:
                state.tracks_book_changes = True
            is_new = entry.sequence > self._tables_sequence
            if is_new and (outcome.has_effects or entry.sequence == until):
                yield CommittedCommand(entry.sequence, outcome, entry.payload)
            else:
                yield None

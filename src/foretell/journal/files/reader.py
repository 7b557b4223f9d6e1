"""Read a journal's files without a lock: their entries, and the state that they fold into.

Reading up to a durable sequence is safe while another process writes: what is durable is never
changed, and only the holder of the lock removes the oldest segments.
"""

from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from foretell.domain.errors.storage import JournalDamaged
from foretell.domain.exchange.state import State
from foretell.domain.treasury.folds import ShardFold
from foretell.journal.files.segments import check_rest, read_records, read_segment, segment_paths
from foretell.journal.port import Entry, Snapshot
from foretell.runtime.garbage_collection import garbage_collection_paused


class ReplayedState(NamedTuple):
    """A state and its sequence."""

    state: State
    sequence: int


class Payloads(NamedTuple):
    """The payloads of consecutive entries, and the sequence of the last one."""

    payloads: list[bytes]
    last_sequence: int


def read_entries(
    folder: Path, after: int = 0, until: int | None = None
) -> Generator[Entry, None, None]:
    """Yield the entries of a journal's files after a sequence; damage raises JournalDamaged.

    Nothing after `until` is read, since it may be half written now.
    """
    for payloads, last_sequence in read_payloads(folder, after, until):
        yield from map(Entry, count(last_sequence - len(payloads) + 1), payloads)


def read_payloads(
    folder: Path, after: int = 0, until: int | None = None
) -> Generator[Payloads, None, None]:
    """Yield what `read_entries` does, the payloads of a segment together."""
    paths = segment_paths(folder)
    started = [index for index, path in enumerate(paths) if int(path.stem) <= after + 1]
    if paths and not started:
        raise JournalDamaged(paths[0].name, 0, f"the segment of sequence {after + 1} is missing")
    expected = None
    for index in range(started[-1] if started else 0, len(paths)):
        buffer, end = read_segment(paths[index])
        if expected is not None and (end.sequence, end.chain) != expected:
            raise JournalDamaged(paths[index].name, 0, "it does not follow the previous segment")
        if until is not None and end.sequence >= until:
            return
        payloads, reached = read_records(buffer, end, until)
        del payloads[: max(0, after - end.sequence)]
        yield Payloads(payloads, reached.sequence)
        end = reached
        if end.sequence == until:
            return
        check_rest(buffer, end, is_newest=index == len(paths) - 1)
        expected = (end.sequence, end.chain)


def fold(folder: Path, base: Snapshot | None, until: int | None = None) -> ReplayedState:
    """Return the state after all entries, begun with a snapshot or empty."""
    sequence = 0 if base is None else base.sequence
    with garbage_collection_paused():
        shard = ShardFold(None if base is None else base.payload)
        for payloads, last_sequence in read_payloads(folder, sequence, until):
            for payload in payloads:
                shard.take(payload)
            sequence = max(sequence, last_sequence)
    shard.state.tracks_book_changes = True
    return ReplayedState(shard.state, sequence)

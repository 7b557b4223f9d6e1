"""The check that a shard's journal in PostgreSQL is complete and has no leader."""

from typing import Final

from foretell.domain.errors.command import JournalTruncated
from foretell.domain.errors.storage import JournalBehindTables, JournalFailed, LeaseHeld
from foretell.journal.postgres.connections import LOST, cause_of, connected
from foretell.journal.postgres.leases import JournalPlace, find_endpoint

_ENDS: Final = "SELECT min(sequence), max(sequence) FROM journal.record WHERE shard = $1"


async def check_beginning(place: JournalPlace, sequence: int) -> None:
    """Refuse a journal that has a leader, lacks its beginning, or ends before a sequence."""
    endpoint = await find_endpoint(place)
    if endpoint is not None:
        raise LeaseHeld(place.shard, endpoint)
    try:
        async with connected(place.url) as connection:
            first, last = await connection.fetchrow(_ENDS, place.shard)
    except LOST as error:
        raise JournalFailed(cause_of(error)) from error
    if first not in {None, 1}:
        raise JournalTruncated(f"of shard {place.shard}", first)
    if (last or 0) < sequence:
        raise JournalBehindTables(sequence, last or 0)

"""A process that leads a shard as soon as it may, and appends to its journal until it is ended.

Arguments: the database, the shard, the seconds of a lease, a name, and how often it leads before it
ends. It tells `waits`, then `leads <sequence of the last entry>`, then `<sequence> <payload>` of each
that was acknowledged, and `lost` when it may not go on.
"""

import asyncio
import os
import sys

import structlog

from foretell.domain.storage_errors import JournalFailed
from foretell.journal.leases import Candidate, ShardPlace
from foretell.journal.postgres import PostgresJournal, lead

SHARD_COUNT = 8
APPENDED_AT_ONCE = 8
PAUSE_S = 0.001


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def append_for_ever(journal: PostgresJournal, name: str) -> None:
    payload_by_sequence: dict[int, str] = {}
    lost = asyncio.Event()
    told = journal.last_sequence

    def on_synced(sequence: int) -> None:
        nonlocal told
        for each in range(told + 1, sequence + 1):
            tell(each, payload_by_sequence.pop(each))
        told = sequence

    def on_failed(failure: Exception) -> None:
        tell("lost", failure)
        lost.set()

    journal.start(on_synced, on_failed)
    number = 0
    while not lost.is_set():
        for _ in range(APPENDED_AT_ONCE):
            payload = f"{name}-{number}"
            command_id = payload.encode().ljust(32, b".")
            payload_by_sequence[journal.append(payload.encode(), command_id)] = payload
            number += 1
        await asyncio.sleep(PAUSE_S)


async def serve_a_term(place: ShardPlace, candidate: Candidate, name: str) -> None:
    journal = await lead(place, candidate)
    try:
        entries = sum(1 for _ in journal.entries())
        assert entries == journal.last_sequence
        tell("leads", journal.last_sequence)
        await append_for_ever(journal, name)
    finally:
        await journal.close()


async def main(place: ShardPlace, lease_s: float, name: str, terms: int) -> None:
    """Lead, and after each loss wait to lead again: in a process of the product that is a start."""
    for term in range(terms):
        tell("waits")
        candidate = Candidate(os.urandom(16), name, lease_s)
        try:
            await serve_a_term(place, candidate, f"{name}.{term}")
        except JournalFailed as failure:
            tell("failed", failure)


structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
url, shard, lease, leader, count = sys.argv[1:]
asyncio.run(main(ShardPlace(url, int(shard), SHARD_COUNT), float(lease), leader, int(count)))

"""A process that leads a shard as soon as it may, and appends to its journal until it is ended.

Arguments: the database, the shard, the seconds of a lease, and a name. It tells `waits`, then
`leads <epoch> <sequence of the last entry>`, then `<sequence> <payload>` of each that was
acknowledged, and `lost` when it may not go on.
"""

import asyncio
import os
import sys

import structlog

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


async def main(url: str, shard: int, lease_s: float, name: str) -> None:
    tell("waits")
    place = ShardPlace(url, shard, SHARD_COUNT)
    journal = await lead(place, Candidate(os.urandom(16), name, lease_s))
    entries = sum(1 for _ in journal.entries())
    assert entries == journal.last_sequence
    tell("leads", journal.last_sequence)
    await append_for_ever(journal, name)
    await journal.close()


structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))

"""A process that leads a shard as soon as it may, and appends to its journal until it is ended.

Arguments: the seconds of a lease, a name, and how often it leads before it ends. The first line of its
standard input is the address of the database, and the process ends when that input closes. It prints
`waits`, then `leads <sequence of the last entry>`, then `<sequence> <payload>` for each acknowledged
record, and `lost` when it may not continue.
"""

import asyncio
import os
import sys
import threading
from typing import Final

import structlog

from foretell.app.clock_and_ids import new_word
from foretell.domain.errors.storage import JournalFailed
from foretell.domain.values.hexadecimal import word_bytes
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.journal import PostgresJournal, lead
from foretell.journal.postgres.leases import Candidate, JournalPlace

SHARD: Final = ShardNumber(0)
SHARD_COUNT: Final = 1
APPENDED_AT_ONCE: Final = 8
PAUSE_S: Final = 0.001
COMMAND_ID_BYTES: Final = 32


def main() -> None:
    """Lead, and append until the process is ended."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    url = sys.stdin.readline().strip()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    lease_s, name, terms = sys.argv[1:]
    asyncio.run(_lead(url, float(lease_s), name, int(terms)))


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


async def _lead(url: str, lease_s: float, name: str, terms: int) -> None:
    """Lead, and after each loss wait to lead again, as a process of the product does by a restart."""
    for term in range(terms):
        _report("waits")
        candidate = Candidate(word_bytes(new_word()), name, lease_s)
        try:
            await _lead_one_term(url, candidate, f"{name}.{term}")
        except JournalFailed as failure:
            _report("failed", failure)


async def _lead_one_term(url: str, candidate: Candidate, name: str) -> None:
    journal = await lead(JournalPlace(url, SHARD, SHARD_COUNT), candidate)
    try:
        entries = sum(1 for _ in journal.entries())
        assert entries == journal.last_sequence
        _report("leads", journal.last_sequence)
        await _append_until_lost(journal, name)
    finally:
        await journal.close()


async def _append_until_lost(journal: PostgresJournal, name: str) -> None:
    payload_by_sequence: dict[int, str] = {}
    lost = asyncio.Event()
    reported = journal.last_sequence

    def on_synced(sequence: int) -> None:
        nonlocal reported
        for each in range(reported + 1, sequence + 1):
            _report(each, payload_by_sequence.pop(each))
        reported = sequence

    def on_failed(failure: Exception) -> None:
        _report("lost", failure)
        lost.set()

    journal.start(on_synced, on_failed)
    number = 0
    while not lost.is_set():
        for _ in range(APPENDED_AT_ONCE):
            payload = f"{name}-{number}"
            command_id = payload.encode().ljust(COMMAND_ID_BYTES, b".")
            payload_by_sequence[journal.append(payload.encode(), command_id)] = payload
            number += 1
        await asyncio.sleep(PAUSE_S)


def _report(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""`foretell bench journal --postgres`: the same for a journal in a database (journal-postgres).

The floor is one INSERT of the same bytes in one commit: no lease, no hash chain, no unique id.
"""

from collections.abc import Sequence
from typing import Final

import uvloop
from rich.console import Console

from foretell.bench.rigs.batches import (
    BATCH_PLAN,
    AlternatingBatches,
    BatchPlan,
    Measured,
    batch_table,
    ratio_words,
)
from foretell.bench.rigs.scratch_database import scratch_database
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.journal import lead
from foretell.journal.postgres.leases import Candidate, JournalPlace

_MAKE_BARE: Final = "CREATE SCHEMA journal; CREATE TABLE journal.bare (payload bytea)"
_INSERT_BARE: Final = "INSERT INTO journal.bare SELECT unnest($1::bytea[])"


def run_bench_postgres_journal(
    url: str, holder: bytes, rounds: int, console: Console, plan: BatchPlan = BATCH_PLAN
) -> None:
    """Measure on a database without a journal, leave it as it was, and print the ratios."""
    measured = uvloop.run(measure_postgres(url, holder, rounds, plan))
    console.print(batch_table(measured, "bare commit", is_watched=False))
    console.print(
        f"journal-postgres: a batch takes {ratio_words(measured)} times as long as a bare commit of"
        f" the same bytes (medians of {rounds} rounds)"
    )


async def measure_postgres(
    url: str, holder: bytes, rounds: int, plan: BatchPlan
) -> Sequence[Measured]:
    """Return the measures of a journal in a database; refuse a database that has a journal."""
    async with scratch_database(url) as connection:
        await connection.execute(_MAKE_BARE)

        async def insert(payloads: Sequence[bytes]) -> None:
            await connection.execute(_INSERT_BARE, payloads)

        journal = await lead(JournalPlace(url, ShardNumber(0), 1), Candidate(holder, "bench"))
        try:
            return await AlternatingBatches(journal, insert, plan).take_rounds(rounds, lambda: None)
        finally:
            await journal.close()

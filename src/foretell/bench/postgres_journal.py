"""`foretell bench journal --postgres`: the same of the journal of many machines (journal-postgres).

The floor is one bare INSERT of the same bytes in one commit: no lease, no chain, no unique id.
"""

from collections.abc import Sequence
from typing import Final

import uvloop
from rich.console import Console

from foretell.bench.rigs.batches import Measured, Turns, batch_table, ratio_words
from foretell.bench.rigs.scratch_database import lent_database
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.journal import lead
from foretell.journal.postgres.leases import Candidate, JournalPlace

_MAKE_BARE: Final = "CREATE SCHEMA journal; CREATE TABLE journal.bare (payload bytea)"
_INSERT_BARE: Final = "INSERT INTO journal.bare SELECT unnest($1::bytea[])"


def run_bench_postgres_journal(url: str, holder: bytes, rounds: int, console: Console) -> None:
    """Measure on a database without a journal, which is left as it was; print the ratios."""
    measured = uvloop.run(_measure(url, holder, rounds))
    console.print(batch_table(measured, "bare commit", is_watched=False))
    console.print(
        f"journal-postgres: a batch takes {ratio_words(measured)} times as long as a bare commit of"
        f" the same bytes (medians of {rounds} rounds)"
    )


async def _measure(url: str, holder: bytes, rounds: int) -> Sequence[Measured]:
    async with lent_database(url) as connection:
        await connection.execute(_MAKE_BARE)

        async def insert(payloads: Sequence[bytes]) -> None:
            await connection.execute(_INSERT_BARE, payloads)

        journal = await lead(JournalPlace(url, ShardNumber(0), 1), Candidate(holder, "bench"))
        try:
            return await Turns(journal, insert).take_rounds(rounds, lambda: None)
        finally:
            await journal.close()

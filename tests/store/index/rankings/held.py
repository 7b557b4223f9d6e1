"""A wallet with a position in a market that has a quote, and its gain as the standings have it."""

import sqlalchemy as sa
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows, an_event_row
from tests.rigs.values import TOKEN, an_address

from foretell.domain.portfolio.periods import Period
from foretell.store.database import Database
from foretell.store.index.generations import load_live, sums_of
from foretell.store.tables import standings

ANN = an_address("ann")


async def hold_quoted(database: Database) -> None:
    """Let ann hold ten tokens of rain, which cost four and are quoted at 0.41, and keep the standings."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("rain"))
        await rows.quote("rain", 40, 42)
        await rows.hold("ann", "rain", 10 * TOKEN, 4 * TOKEN)
    await keep_rankings(database)


async def gain_of_ann(database: Database) -> int:
    async with database.reading() as tx:
        key = sums_of(await load_live(tx))[Period.ALL].key
        found = await tx.scalar(
            sa.select(standings.c.gain_units).where(
                standings.c.wallet == ANN, standings.c.period == key, standings.c.category == ""
            )
        )
    return int(found)

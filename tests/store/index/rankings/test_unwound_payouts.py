"""Payouts that a reorganization takes back, after prices were looked up and before the sums came to their blocks."""

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows, an_event_row
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address

from foretell.domain.portfolio.periods import Period
from foretell.store.database import Database
from foretell.store.index.generations import load_live, sums_of
from foretell.store.index.rankings.revalue import begin_changes
from foretell.store.index.unwind import unwind
from foretell.store.tables import standings

pytestmark = pytest.mark.anyio

ANN = an_address("ann")
PAID_IN = 1_000


async def gain_of_ann(database: Database) -> int:
    async with database.reading() as tx:
        key = sums_of(await load_live(tx))[Period.ALL].key
        found = await tx.scalar(
            sa.select(standings.c.gain_units).where(
                standings.c.wallet == ANN, standings.c.period == key, standings.c.category == ""
            )
        )
    return int(found)


async def test_a_payout_is_taken_back_that_only_the_price_of_a_sum_had(database: Database) -> None:
    """A finding: the sum counted its holders at the payout until the next change of the market's quote."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("rain"))
        await rows.quote("rain", 40, 42)
        await rows.hold("ann", "rain", 10 * TOKEN, 4 * TOKEN)
    await keep_rankings(database)
    before = await gain_of_ann(database)
    async with database.writing() as tx:
        await Rows(tx, PAID_IN).resolve("rain", 1, 0)
        of_sum = sums_of(await load_live(tx))[Period.ALL]
        await begin_changes(tx, of_sum, [a_word("rain")], NOW_S)
    async with database.writing() as tx:
        await unwind(tx, PAID_IN - 1)
    await keep_rankings(database)
    assert await gain_of_ann(database) == before

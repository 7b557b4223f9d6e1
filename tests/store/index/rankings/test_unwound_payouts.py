"""Payouts that a reorganization takes back, after prices were looked up and before the sums came to their blocks."""

import pytest
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, a_word
from tests.store.index.rankings.held import gain_of_ann, hold_quoted

from foretell.domain.portfolio.periods import Period
from foretell.store.database import Database
from foretell.store.index.generations import load_live, sums_of
from foretell.store.index.rankings.revalue import begin_changes
from foretell.store.index.unwind import unwind

pytestmark = pytest.mark.anyio

PAID_IN = 1_000


async def test_a_payout_is_taken_back_that_only_the_price_of_a_sum_had(database: Database) -> None:
    """A finding: the sum counted its holders at the payout until the next change of the market's quote."""
    await hold_quoted(database)
    before = await gain_of_ann(database)
    async with database.writing() as tx:
        await Rows(tx, PAID_IN).resolve("rain", 1, 0)
        of_sum = sums_of(await load_live(tx))[Period.ALL]
        await begin_changes(tx, of_sum, [a_word("rain")], NOW_S)
    async with database.writing() as tx:
        await unwind(tx, PAID_IN - 1)
    await keep_rankings(database)
    assert await gain_of_ann(database) == before

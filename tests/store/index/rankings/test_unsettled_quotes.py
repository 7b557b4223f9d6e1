"""Quotes that are written twice in one millisecond, with a round of the standings between."""

import pytest
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_word
from tests.store.index.rankings.held import gain_of_ann, hold_quoted

from foretell.domain.portfolio.periods import Period
from foretell.store.database import Database
from foretell.store.index.generations import RunningSum
from foretell.store.index.rankings.prices import BEFORE_ALL_CONDITIONS, load_changed_quotes
from foretell.store.quoted_columns import SETTLED_MS

pytestmark = pytest.mark.anyio


async def test_a_quote_that_changes_again_in_its_millisecond_counts(database: Database) -> None:
    """A finding: holders counted at the first price until the next change of the quote."""
    await hold_quoted(database)
    before = await gain_of_ann(database)
    async with database.writing() as tx:
        await Rows(tx).quote("rain", 80, 82)
    await keep_rankings(database, NOW_MS + 2_000)
    assert await gain_of_ann(database) == before + 4 * TOKEN


async def test_a_settled_quote_is_not_looked_up_again(database: Database) -> None:
    await hold_quoted(database)
    of_sum, settled_s = RunningSum(0, Period.ALL), NOW_S + SETTLED_MS // 1000
    async with database.reading() as tx:
        young = await load_changed_quotes(tx, of_sum, BEFORE_ALL_CONDITIONS, settled_s - 1)
        settled = await load_changed_quotes(tx, of_sum, BEFORE_ALL_CONDITIONS, settled_s)
    assert (young.condition_ids, settled.condition_ids) == ({a_word("rain")}, set())

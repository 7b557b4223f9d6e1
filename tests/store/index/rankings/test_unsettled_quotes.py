"""Quotes that are written twice in one millisecond, or beyond many that change, with rounds of the standings between."""

from typing import Final

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
from foretell.store.tables import quotes

pytestmark = pytest.mark.anyio

BUSY: Final = "snow"
"""A market that rounds come to before rain."""


@pytest.fixture
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every limit be one condition."""
    monkeypatch.setattr("foretell.store.index.rankings.prices.QUOTES_PER_READ_MAX", 1)
    monkeypatch.setattr("foretell.indexer.rankings.CONDITIONS_PER_STEP_MAX", 1)
    monkeypatch.setattr("foretell.indexer.rankings.CONDITIONS_PER_ROUND_MAX", 1)


async def hold_beyond_busy(database: Database) -> None:
    """Let ann hold a quoted market whose condition comes after another one with a quote."""
    assert a_word(BUSY) < a_word("rain")
    async with database.writing() as tx:
        rows = Rows(tx, 50)
        await rows.open_named(BUSY)
        await rows.quote(BUSY, 40, 42)
    await hold_quoted(database)


async def write_again(database: Database, bid: int, at_ms: int) -> None:
    """Write the quote of rain as of a time."""
    async with database.writing() as tx:
        await Rows(tx).quote("rain", bid, bid + 2)
        await tx.execute(
            quotes.update()
            .where(quotes.c.condition_id == a_word("rain"))
            .values(updated_at_ms=at_ms)
        )


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


@pytest.mark.usefixtures("small_rounds")
async def test_a_quote_counts_although_one_before_it_always_changes(database: Database) -> None:
    """A finding: each round ended at a limit, and began with the same conditions."""
    await hold_beyond_busy(database)
    before = await gain_of_ann(database)
    await write_again(database, 80, NOW_MS + 500)
    await keep_rankings(database, NOW_MS + 2_000)
    assert await gain_of_ann(database) == before + 4 * TOKEN


@pytest.mark.usefixtures("small_rounds")
async def test_the_second_write_of_a_millisecond_counts_beyond_a_busy_quote(
    database: Database,
) -> None:
    """A finding: a round that had not come to the quote had it count as settled from then on."""
    await hold_beyond_busy(database)
    before = await gain_of_ann(database)
    await write_again(database, 80, NOW_MS)
    for later_ms in (2 * SETTLED_MS, 4 * SETTLED_MS):
        await keep_rankings(database, NOW_MS + later_ms)
    assert await gain_of_ann(database) == before + 4 * TOKEN

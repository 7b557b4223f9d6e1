"""Answers and totals of listings: a row that is changed is named, and one that is to be computed again is not."""

import pytest
import sqlalchemy as sa
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import EventActs, RandomHistory, differences
from tests.rigs.read_apis import keep_listings, keep_rankings
from tests.rigs.sandbox import an_indexer, catch_up

from foretell.reconciliation import verify
from foretell.store.index.listing_totals import UNSETTLED
from foretell.store.index.oracle_answers import AnswerStep
from foretell.store.tables import (
    answers,
    event_totals,
    listing_cursors,
    market_totals,
    orders,
    quotes,
)

pytestmark = pytest.mark.anyio

Market = tuple[IndexerRig, EventActs]
HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "ROUND_PAUSE_S", 0.0)


@pytest.mark.parametrize("column", ["price", "step", "account"])
async def test_an_answer_is_compared_with_the_logs_of_the_oracle(
    played: RandomHistory, column: str
) -> None:
    async with played.database.reading() as tx:
        rows = await tx.all(sa.select(answers))
    assert {row.step for row in rows} == {*AnswerStep}
    assert await differences(played) == []
    is_first = answers.c.block_number == rows[0].block_number
    change = sa.update(answers).where(is_first).values({column: "7"})
    place = rows[0].block_number, rows[0].log_index
    assert await differences(played, change) == [("answers", place)]


async def test_an_answer_that_is_missing_is_named(played: RandomHistory) -> None:
    async with played.database.reading() as tx:
        rows = await tx.all(sa.select(answers))
    missing = await differences(played, answers.delete())
    assert missing == [("answers", (row.block_number, row.log_index)) for row in rows]


@pytest.mark.parametrize("table", [market_totals, event_totals])
async def test_totals_of_lists_are_compared_with_books_and_payouts(
    played: RandomHistory, table: sa.Table
) -> None:
    change = sa.update(table).where(table.c[0] == 1).values(slug="another-slug")
    assert await differences(played) == []
    assert await differences(played, change) == [(table.name, 1)]


async def test_totals_of_a_quote_that_is_newer_are_not_compared(played: RandomHistory) -> None:
    newer = sa.update(quotes).values(updated_at_ms=quotes.c.updated_at_ms + 1, best_bid_ticks=1)
    assert await differences(played, newer) == []
    now = sa.select(listing_cursors.c.at_ms)
    async with played.database.reading() as tx:
        now_ms = await tx.scalar(now)
    await keep_listings(played.database, now_ms)
    assert await differences(played) == []
    wrong = sa.update(market_totals).values(volume_units=2)
    assert ("market_totals", 1) in await differences(played, wrong)


async def test_large_liquidity_is_compared_to_the_last_unit(played: RandomHistory) -> None:
    """Earlier releases added it up in floating point, and so a part of 10^9 was not compared."""
    async with played.database.writing() as tx:
        resting = {"is_yes": True, "price_ticks": 50, "size_units": 10**15}
        await tx.execute(sa.update(orders).values(**resting))
        top = {"best_bid_ticks": 49, "best_ask_ticks": 51}
        newer = quotes.c.updated_at_ms + 1
        await tx.execute(sa.update(quotes).values(updated_at_ms=newer, **top))
        await tx.execute(sa.update(market_totals).values(seen_ms=UNSETTLED))
        now_ms = await tx.scalar(sa.select(listing_cursors.c.at_ms))
    await keep_listings(played.database, now_ms)
    assert await differences(played) == []
    more = {"liquidity_units": market_totals.c.liquidity_units + 1}
    wrong = sa.update(market_totals).where(market_totals.c.liquidity_units > 10**12).values(more)
    assert "market_totals" in dict(await differences(played, wrong))


async def test_a_round_that_is_under_way_is_waited_for(
    played: RandomHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The totals are of a later minute than the time that is stored: no row may be called wrong for that."""
    async with played.database.reading() as tx:
        now_ms = await tx.scalar(sa.select(listing_cursors.c.at_ms))
    await keep_rankings(played.database, now_ms + 48 * HOUR_MS)
    await keep_listings(played.database, now_ms + 48 * HOUR_MS)
    async with played.database.writing() as tx:
        await tx.execute(listing_cursors.update().values(at_ms=now_ms))
    waits: list[float] = []

    async def end_the_round(pause_s: float) -> None:
        waits.append(pause_s)
        async with played.database.writing() as tx:
            await tx.execute(listing_cursors.update().values(at_ms=now_ms + 48 * HOUR_MS))

    monkeypatch.setattr("foretell.reconciliation.verify.asyncio.sleep", end_the_round)
    assert await differences(played) == []
    assert len(waits) == 1


async def test_the_chain_has_the_payout_of_a_listed_market(
    played: RandomHistory, market: Market
) -> None:
    """A market that has a payout is compared once the totals have it, too."""
    await market[0].resolve()
    await catch_up(an_indexer(played.sandbox, played.database))
    assert await differences(played) == []
    await played.finish()
    assert await differences(played) == []
    wrong = sa.update(market_totals).where(market_totals.c.closed_at_s.is_not(None))
    assert ("market_totals", 1) in await differences(played, wrong.values(evenness=0.0))

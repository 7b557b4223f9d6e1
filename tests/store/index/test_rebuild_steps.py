"""Bounds of what a step of a rebuild or of a round reads, where most rows are of no use to it."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address

from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database, Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.index.generations import RunningSum
from foretell.store.index.listing_recount import BEFORE_ALL_IDS, OF_MARKETS, remove_orphans
from foretell.store.index.rankings.advance import advance
from foretell.store.index.rankings.history import ACTIVITIES_PER_TRADE_MAX, BlockRange
from foretell.store.index.rankings.prices import (
    BEFORE_ALL_CONDITIONS,
    ChangedQuotes,
    load_changed_quotes,
    load_current_marks,
)
from foretell.store.index.rankings.progress import MarkState, load_cursors, record_marks
from foretell.store.index.trading_totals import load_next_trades
from foretell.store.quoted_columns import SETTLED_MS
from foretell.store.tables import standings

pytestmark = pytest.mark.anyio

ROWS_MAX: Final = 2
PASSED_MAX: Final = ROWS_MAX * ACTIVITIES_PER_TRADE_MAX
SPLITS: Final = 5 * PASSED_MAX
TRADED_AT: Final = 1_000
FAR: Final = 2_000


async def write_splits(database: Database, *, is_one_block: bool) -> None:
    """Write many splits from block 10 on, in one block or in one each, and a trade after them."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(SPLITS):
            place = {"block_number": 10 if is_one_block else 10 + number, "log_index": number}
            await rows.act("ann", "rain", ActivityKind.SPLIT, TOKEN, **place)
        await rows.buy("bob", "rain", TOKEN, TOKEN, block_number=TRADED_AT)


async def ends_of_steps(database: Database) -> list[int]:
    """Return the last block of each step up to the one with the trade."""
    ends = [BEFORE_ALL_BLOCKS]
    while True:
        async with database.reading() as tx:
            found = await load_next_trades(tx, BlockRange(ends[-1], FAR), ROWS_MAX)
        assert found.last > ends[-1], "each step goes on"
        ends.append(found.last)
        if found.trades:
            assert [trade.wallet for trade in found.trades] == [an_address("bob")]
            return ends


async def ends_of_rounds(database: Database) -> list[int]:
    """Return the last block of each step of a running sum, of which the last one adds the trade."""
    ends, is_behind = [BEFORE_ALL_BLOCKS], True
    while is_behind:
        async with database.writing() as tx:
            is_behind = await advance(tx, RunningSum(0, Period.ALL), None, ROWS_MAX, FAR)
            ends.append((await load_cursors(tx, 0))[Period.ALL].block_number)
    async with database.reading() as tx:
        assert await tx.scalar(sa.select(standings.c.wallet)) == an_address("bob")
    return ends


@pytest.mark.parametrize("ends_of", [ends_of_steps, ends_of_rounds])
async def test_a_step_ends_after_as_many_activities_even_if_none_is_a_trade(
    database: Database, ends_of: Callable[[Database], Awaitable[list[int]]]
) -> None:
    await write_splits(database, is_one_block=False)
    ends = await ends_of(database)
    assert len(ends) > SPLITS // PASSED_MAX
    async with database.reading() as tx:
        for after, last in itertools.pairwise(ends):
            passed = sa.text(
                "SELECT count(*) FROM activities WHERE block_number > :after AND block_number <= :last"
            )
            assert await tx.scalar(passed.bindparams(after=after, last=last)) <= PASSED_MAX


async def test_a_step_has_all_of_a_block_with_more_activities(database: Database) -> None:
    await write_splits(database, is_one_block=True)
    assert await ends_of_steps(database) == [BEFORE_ALL_BLOCKS, 9, 10, FAR]
    assert await ends_of_rounds(database) == [BEFORE_ALL_BLOCKS, 9, 10, TRADED_AT]


async def test_quotes_are_compared_with_their_marks_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    monkeypatch.setattr("foretell.store.index.rankings.prices.QUOTES_PER_READ_MAX", 2)
    of_sum, names = RunningSum(0, Period.ALL), ("rain", "snow", "hail", "wind", "mist")
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in names:
            await rows.open_named(name)
            await rows.quote(name, 60, 62)
        known = sorted(map(a_word, names))
        await record_marks(tx, of_sum, [await same_mark(tx, known[1])])
    pages: list[ChangedQuotes] = []
    after: str | None = BEFORE_ALL_CONDITIONS
    async with database.reading() as tx:
        while after is not None:
            pages.append(await load_changed_quotes(tx, of_sum, after, NOW_S + SETTLED_MS // 1000))
            after = pages[-1].last
    assert [sorted(page.condition_ids) for page in pages] == [[known[0]], known[2:4], known[4:]]
    assert [page.last for page in pages] == [known[1], known[3], None]


async def same_mark(tx: Transaction, condition_id: Bytes32) -> MarkState:
    """Return a mark that has the present quote of a condition."""
    return MarkState(condition_id, (await load_current_marks(tx, [condition_id]))[condition_id])


@pytest.mark.parametrize("totals", OF_MARKETS, ids=lambda table: table.name)
async def test_a_step_looks_at_few_totals_and_deletes_those_without_a_market(
    database: Database, totals: sa.Table
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail", "wind"):
            await rows.open_named(name)
    await keep_listings(database)
    [own] = totals.primary_key.columns
    async with database.writing() as tx:
        listed = sorted(row[0] for row in await tx.all(sa.select(own)))
        template = (await tx.all(sa.select(totals)))[0]._asdict()
        orphans = [listed[-1] + 1, listed[-1] + 5]
        for each in orphans:
            await tx.execute(totals.insert().values({**template, own.name: each}))
    pages: list[list[int]] = []
    after = BEFORE_ALL_IDS
    while not pages or pages[-1]:
        async with database.writing() as tx:
            pages.append(list(await remove_orphans(tx, totals, after, 2)))
        after = (pages[-1] or [after])[-1]
    assert pages == [listed[:2], listed[2:], orphans, []]
    async with database.reading() as tx:
        assert sorted(row[0] for row in await tx.all(sa.select(own))) == listed

from typing import Any

import pytest
from tests.rigs.values import a_word, an_address
from tests.store.queries.recorded_queries import recorded

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import TradePrice
from foretell.store.database import Database
from foretell.store.index.activities import (
    ActivityFilter,
    ActivityKind,
    ActivityOrder,
    ActivityPage,
    ActivityRow,
    ExchangeFill,
    load_last_prices,
    record_activities,
    record_exchange_fills,
)
from foretell.store.index.activity_pages import load_activities

pytestmark = pytest.mark.anyio

ANN, BOB = an_address("ann"), an_address("bob")
YES, NO = AssetId("1"), AssetId("3")
ALL = ActivityPage(limit=100)


def a_trade(block_number: int, **fields: Any) -> ActivityRow:
    trade = ActivityRow(
        block_number,
        log_index=0,
        part=0,
        wallet=ANN,
        kind=ActivityKind.TRADE,
        condition_id=a_word("rain"),
        token_id=YES,
        side=Side.BUY,
        size_units=10,
        cost_units=4,
        is_taker=True,
        timestamp_s=1000 + block_number,
        tx_hash=a_word(f"tx {block_number}"),
    )
    return trade._replace(**fields)


def a_split(block_number: int, **fields: Any) -> ActivityRow:
    split = a_trade(block_number, kind=ActivityKind.SPLIT, token_id=None, side=None, is_taker=False)
    return split._replace(**fields)


FIRST = a_trade(1)
SOLD = a_trade(2, side=Side.SELL, size_units=3, cost_units=9, is_taker=False)
SNOW = a_trade(3, condition_id=a_word("snow"), size_units=30, cost_units=1)
SPLIT = a_split(4, size_units=20, cost_units=20)
BOBS = a_trade(5, wallet=BOB, size_units=1, cost_units=1)
EVERYTHING = [FIRST, SOLD, SNOW, SPLIT, BOBS]


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (ActivityFilter(), [BOBS, SPLIT, SNOW, SOLD, FIRST]),
        (ActivityFilter(wallet=ANN), [SPLIT, SNOW, SOLD, FIRST]),
        (ActivityFilter(condition_ids=[a_word("snow")]), [SNOW]),
        (ActivityFilter(condition_ids=[]), []),
        (ActivityFilter(kinds=[ActivityKind.SPLIT, ActivityKind.MERGE]), [SPLIT]),
        (ActivityFilter(side=Side.SELL), [SOLD]),
        (ActivityFilter(side=Side.BUY), [BOBS, SNOW, FIRST]),
        (ActivityFilter(start_s=1002, end_s=1003), [SNOW, SOLD]),
        (ActivityFilter(takers_only=True), [BOBS, SNOW, FIRST]),
        (ActivityFilter(size_units_min=20), [SPLIT, SNOW]),
        (ActivityFilter(cost_units_min=9), [SPLIT, SOLD]),
        (ActivityFilter(wallet=ANN, kinds=[ActivityKind.TRADE], side=Side.BUY), [SNOW, FIRST]),
    ],
)
async def test_filters_select_the_named_activities(
    database: Database, chosen: ActivityFilter, found: list[ActivityRow]
) -> None:
    async with database.writing() as tx:
        await record_activities(tx, EVERYTHING)
        assert await load_activities(tx, chosen, ALL) == found


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        (ActivityOrder.TIME, [FIRST, SOLD, SNOW, SPLIT, BOBS]),
        (ActivityOrder.SIZE, [BOBS, SOLD, FIRST, SPLIT, SNOW]),
        (ActivityOrder.COST, [SNOW, BOBS, FIRST, SOLD, SPLIT]),
    ],
)
async def test_activities_are_sorted_both_ways(
    database: Database, order: ActivityOrder, rows: list[ActivityRow]
) -> None:
    rising = ActivityPage(limit=100, order=order, is_descending=False)
    falling = ActivityPage(limit=100, order=order)
    async with database.writing() as tx:
        await record_activities(tx, EVERYTHING)
        assert await load_activities(tx, ActivityFilter(), rising) == rows
        assert await load_activities(tx, ActivityFilter(), falling) == rows[::-1]


async def test_pages_are_disjoint_and_complete(database: Database) -> None:
    async with database.writing() as tx:
        await record_activities(tx, EVERYTHING)
        pages = [
            await load_activities(tx, ActivityFilter(), ActivityPage(limit=2, offset=offset))
            for offset in (0, 2, 4, 6)
        ]
    assert [*pages[0], *pages[1], *pages[2], *pages[3]] == EVERYTHING[::-1]
    assert pages[3] == []


async def test_acts_of_the_same_second_keep_the_order_of_their_logs(database: Database) -> None:
    acts = [a_trade(7, log_index=index, timestamp_s=1) for index in (3, 1, 2)]
    async with database.writing() as tx:
        await record_activities(tx, acts)
        found = await load_activities(tx, ActivityFilter(), ALL)
    assert [act.log_index for act in found] == [3, 2, 1]


def a_fill(
    block_number: int, log_index: int, cost_units: int, token_id: AssetId = YES
) -> ExchangeFill:
    return ExchangeFill(
        block_number,
        log_index,
        part=0,
        order_id=a_word("order"),
        wallet=ANN,
        counterparty=BOB,
        side=Side.SELL,
        token_id=token_id,
        size_units=10,
        cost_units=cost_units,
        fee_units=1,
        is_taker=False,
        tx_hash=a_word("match"),
    )


async def test_the_last_price_is_that_of_the_newest_fill(database: Database) -> None:
    async with database.writing() as tx:
        await record_exchange_fills(tx, [a_fill(4, 9, 7), a_fill(4, 2, 5), a_fill(3, 20, 1)])
        await record_exchange_fills(tx, [a_fill(4, 3, 2, NO), a_fill(4, 1, 3, NO)])
        prices = await load_last_prices(tx, [YES, NO, AssetId("2")])
        assert prices == {YES: TradePrice(7, 10), NO: TradePrice(2, 10)}
        assert await load_last_prices(tx, []) == {}


async def test_the_prices_of_all_given_tokens_are_one_read(database: Database) -> None:
    """A12: `load_last_price` ran once for each given token."""
    tokens = [AssetId(str(number)) for number in range(200)]
    async with database.writing() as tx:
        fills = [a_fill(4, place, place, token) for place, token in enumerate(tokens)]
        await record_exchange_fills(tx, fills)
        with recorded() as queries:
            prices = await load_last_prices(tx, tokens)
    assert len(queries) == 1
    assert prices == {token: TradePrice(place, 10) for place, token in enumerate(tokens)}


async def test_recording_nothing_changes_nothing(database: Database) -> None:
    async with database.writing() as tx:
        await record_activities(tx, [])
        await record_exchange_fills(tx, [])
        assert await load_activities(tx, ActivityFilter(), ALL) == []

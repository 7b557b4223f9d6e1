import pytest
from tests.rigs.values import a_word

from foretell.domain.portfolio.price_history import Buckets
from foretell.domain.portfolio.prices import BookTop
from foretell.store.database import Database
from foretell.store.trading.quote_points import (
    HistoryPoint,
    QuoteKey,
    QuotePoint,
    load_first_minute,
    load_history,
    record_quote_points,
)

pytestmark = pytest.mark.anyio

MARKET = a_word("market")
MINUTE = 30_000_000


def at(minute: int, market: str = "market") -> QuoteKey:
    return QuoteKey(a_word(market), MINUTE + minute)


def top(bid: int) -> BookTop:
    return BookTop(100, bid, 90, None)


def the_end_of(minute: int) -> int:
    return (MINUTE + minute + 1) * 60


async def record(database: Database, *points: tuple[QuoteKey, BookTop]) -> None:
    async with database.writing() as tx:
        await record_quote_points(tx, {key: QuotePoint(top, 0) for key, top in points})


async def history(database: Database, wanted: Buckets) -> list[HistoryPoint]:
    async with database.reading() as tx:
        return list(await load_history(tx, MARKET, wanted))


async def test_the_last_point_of_a_minute_replaces_the_earlier_ones(database: Database) -> None:
    await record(database, (at(0), top(10)), (at(1), top(11)))
    await record(database, (at(1), top(12)))
    ends = Buckets(the_end_of(0), the_end_of(1), 60)
    assert await history(database, ends) == [
        HistoryPoint(the_end_of(0), top(10)),
        HistoryPoint(the_end_of(1), top(12)),
    ]


async def test_each_bucket_has_the_last_point_before_its_end(database: Database) -> None:
    await record(database, (at(0), top(1)), (at(3), top(2)), (at(4), top(3)), (at(20), top(4)))
    ends = Buckets(the_end_of(1), the_end_of(21), 5 * 60)
    points = await history(database, ends)
    assert [(point.end_s, point.top.best_bid_ticks) for point in points] == [
        (the_end_of(1), 1),
        (the_end_of(6), 3),
        (the_end_of(11), 3),
        (the_end_of(16), 3),
        (the_end_of(21), 4),
    ]


async def test_the_last_bucket_may_be_shorter_and_none_ends_after_it(database: Database) -> None:
    await record(database, (at(0), top(1)), (at(3), top(2)))
    ends = Buckets(the_end_of(0), the_end_of(2), 5 * 60)
    points = await history(database, ends)
    assert points == [
        HistoryPoint(the_end_of(0), top(1)),
        HistoryPoint(the_end_of(2), top(1)),
    ]
    assert await history(database, Buckets(the_end_of(3), the_end_of(2), 60)) == []


async def test_a_point_counts_from_the_end_of_its_own_minute_on(database: Database) -> None:
    await record(database, (at(5), top(7)))
    ends = Buckets(the_end_of(4), the_end_of(5), 60)
    assert [point.end_s for point in await history(database, ends)] == [the_end_of(5)]


async def test_points_of_another_market_are_left_out(database: Database) -> None:
    await record(database, (at(0, "other"), top(10)))
    assert await history(database, Buckets(the_end_of(0), the_end_of(0), 60)) == []


async def test_the_first_minute_is_that_of_the_market(database: Database) -> None:
    await record(database, (at(0, "other"), top(10)), (at(2), top(10)), (at(9), top(10)))
    async with database.reading() as tx:
        assert await load_first_minute(tx, MARKET) == MINUTE + 2
        assert await load_first_minute(tx, a_word("nothing")) is None


async def test_nothing_to_store_changes_nothing(database: Database) -> None:
    await record(database)
    assert await history(database, Buckets(60, 60, 60)) == []


async def test_a_thousand_buckets_are_loaded_by_one_query(database: Database) -> None:
    await record(database, (at(0), top(1)))
    ends = Buckets(the_end_of(0), the_end_of(999), 60)
    assert len(await history(database, ends)) == 1000

"""The kept volumes of builders, and what is read of them."""

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.rigs.builders.sums import a_code, kept_sums
from tests.rigs.values import an_address

from foretell.domain.portfolio.builder_volumes import TradedFills, UserDay
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.queries.builder_volumes import (
    BuilderVolume,
    load_builder_days,
    load_builder_ranking,
)
from foretell.store.trading.builder_days import add_traded

pytestmark = pytest.mark.anyio

ALICE, BOB = an_address("alice"), an_address("bob")
ONE, TWO, THREE = a_code(1), a_code(2), a_code(3)
HUGE = 2**62


async def trade(
    database: Database, builder: Bytes32, day: int, units: int, wallet: str = "alice"
) -> None:
    fills = 1 if units > 0 else -1
    async with database.writing() as tx:
        await add_traded(tx, {UserDay(builder, an_address(wallet), day): TradedFills(units, fills)})


async def test_volumes_beyond_63_bits_are_exact(database: Database) -> None:
    for day in range(5):
        await trade(database, ONE, day, HUGE - 1)
    await trade(database, TWO, 4, HUGE)
    async with database.reading() as tx:
        [first, second] = await load_builder_ranking(tx, 0, 9, 0)
        [recent, _] = await load_builder_ranking(tx, 1, 9, 0)
    assert first == BuilderVolume(1, ONE, 5 * (HUGE - 1), 1)
    assert second == BuilderVolume(2, TWO, HUGE, 1)
    assert recent == BuilderVolume(1, ONE, 4 * (HUGE - 1), 1)
    await trade(database, ONE, 0, 1 - HUGE)
    async with database.reading() as tx:
        [first, _] = await load_builder_ranking(tx, 0, 9, 0)
    assert first.volume_units == 4 * (HUGE - 1)


@pytest.mark.parametrize("since", [0, 3])
async def test_volumes_that_differ_in_the_lowest_bit_are_ranked(
    database: Database, since: int
) -> None:
    """The halves of sums over days are carried before they are compared."""
    for day in (3, 4):
        await trade(database, ONE, day, 2**32 - 1)
        await trade(database, TWO, day, 2**32)
    await trade(database, THREE, 4, 2**33 - 1)
    async with database.reading() as tx:
        ranking = await load_builder_ranking(tx, since, 9, 0)
        assert await load_builder_ranking(tx, since, 1, 1) == ranking[1:2]
    assert [(each.rank, each.builder, each.volume_units) for each in ranking] == [
        (1, TWO, 2**33),
        (2, THREE, 2**33 - 1),
        (3, ONE, 2**33 - 2),
    ]


async def test_a_wallet_counts_once_in_a_period_and_on_each_day(database: Database) -> None:
    for day, wallet in ((1, "alice"), (3, "alice"), (3, "bob"), (2, "bob")):
        await trade(database, ONE, day, 5, wallet)
    async with database.reading() as tx:
        users = [(await load_builder_ranking(tx, since, 9, 0))[0].users for since in range(4)]
        days = await load_builder_days(tx, 0, None, 9, 0)
        assert await load_builder_ranking(tx, 4, 9, 0) == []
    assert users == [2, 2, 2, 2]
    assert [(each.day, each.volume.users) for each in days] == [(3, 2), (2, 1), (1, 1)]


async def test_days_are_ranked_each_for_itself_also_those_of_one_builder(
    database: Database,
) -> None:
    for builder, day, units in ((ONE, 1, 5), (TWO, 1, 9), (ONE, 2, 7), (TWO, 2, 7), (THREE, 2, 8)):
        await trade(database, builder, day, units)
    async with database.reading() as tx:
        days = await load_builder_days(tx, 0, None, 9, 0)
        own = await load_builder_days(tx, 0, ONE, 9, 0)
        second = await load_builder_days(tx, 0, None, 2, 2)
        recent = await load_builder_days(tx, 2, ONE, 9, 0)
    ranked = [(day, volume.rank, volume.builder) for day, volume in days]
    assert ranked == [(2, 1, THREE), (2, 2, TWO), (2, 3, ONE), (1, 1, TWO), (1, 2, ONE)]
    assert own == [each for each in days if each.volume.builder == ONE]
    assert second == days[2:4]
    assert recent == own[:1]


async def test_engines_that_add_at_once_count_a_wallet_once(database: Database) -> None:
    """Each of several shards has a projection of its own, and all of them write these tables."""
    for day in range(4):
        await asyncio.gather(
            *(trade(database, ONE, day + shift, 3) for shift in (0, 1, 0, 2)),
            *(trade(database, ONE, day, 3, "bob") for _ in range(2)),
        )
    rows = await kept_sums(database)
    assert rows["builder_totals"] == [(ONE, 0, 72, 24, 2)]
    assert [row[1:] for row in rows["builder_days"]] == [
        (0, 0, 12, 4, 2, 0),
        (1, 0, 15, 5, 2, 0),
        (2, 0, 18, 6, 2, 0),
        (3, 0, 18, 6, 2, 1),
        (4, 0, 6, 2, 1, 0),
        (5, 0, 3, 1, 1, 1),
    ]


async def test_what_was_not_counted_is_an_error_of_the_log_and_stops_no_trade(
    database: Database,
) -> None:
    """An engine of an earlier release may have written trades without these sums."""
    await trade(database, ONE, 1, 5)
    with capture_logs() as lines:
        await trade(database, ONE, 2, -5)
        await trade(database, TWO, 2, 7)
    assert [(each["log_level"], each["builder"]) for each in lines] == [("error", ONE)]
    assert len((await kept_sums(database))["builder_days"]) == 2

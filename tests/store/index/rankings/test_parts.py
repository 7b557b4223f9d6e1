"""A7: ranks among many wallets of equal or nearly equal amounts."""

import random
from collections import Counter
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.values import an_address

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.rank_buckets import bucket_of, part_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.index.generations import RunningSum
from foretell.store.index.rankings.parts import prefix_of
from foretell.store.index.rankings.sums import Sums
from foretell.store.queries.leaderboards import (
    RankingOrder,
    RankingScope,
    load_ranking_of,
    load_rankings,
)
from foretell.store.tables import rank_parts, rank_ties, standings

pytestmark = pytest.mark.anyio

HEAVY_FROM: Final = 8
WALLETS: Final = [Address(an_address(f"trader {number}")) for number in range(60)]
AMOUNTS: Final = (0, 1, 500_000, 500_001, 503_000, -500_000, -500_003, 10**15, 10**15 + 10**12)
EVER: Final = RankingScope(Period.ALL, None)
UP_TO_NOW: Final = RunningSum(0, Period.ALL)


@pytest.fixture(autouse=True)
def heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a few wallets many."""
    monkeypatch.setattr("foretell.store.index.rankings.parts.HEAVY_FROM", HEAVY_FROM)


async def expected(database: Database) -> tuple[Counter[Any], Counter[Any]]:
    """Return the counts of the parts and ties of heavy buckets, from all standings."""
    async with database.reading() as tx:
        rows = await tx.all(sa.select(standings))
    placed: list[tuple[Any, ...]] = [
        (row.period, row.category, "gain", row.gain_units, row.wallet) for row in rows
    ]
    placed += [
        (row.period, row.category, "volume", row.volume_units, row.wallet)
        for row in rows
        if row.volume_units > 0
    ]
    sizes = Counter((*each[:3], bucket_of(each[3])) for each in placed)
    heavy = [each for each in placed if sizes[*each[:3], bucket_of(each[3])] >= HEAVY_FROM]
    parts = Counter((*each[:3], part_of(each[3]).first) for each in heavy)
    return parts, Counter((*each[:4], prefix_of(each[4])) for each in heavy)


async def kept(database: Database) -> list[dict[Any, int]]:
    async with database.reading() as tx:
        return [
            {tuple(row)[:-1]: row.wallets for row in await tx.all(sa.select(table))}
            for table in (rank_parts, rank_ties)
        ]


async def assert_ranks(database: Database) -> None:
    """Compare the rank of each wallet with its place in the whole list."""
    async with database.reading() as tx:
        for order in RankingOrder:
            listed = await load_rankings(tx, EVER, order, limit=1_000, offset=0)
            assert [await load_ranking_of(tx, EVER, order, each.wallet) for each in listed] == [
                *listed
            ]


@pytest.mark.parametrize("seed", range(3))
async def test_a7_parts_follow_the_standings_and_give_the_rank(
    database: Database, seed: int
) -> None:
    rng = random.Random(seed)
    gains: dict[Address, int] = {}
    for number in range(12):
        sums = Sums()
        for wallet in rng.sample(WALLETS, 25):
            units = rng.choice(AMOUNTS) if number < 10 else 0
            sums.add_gain(wallet, "", units - gains.get(wallet, 0))
            gains[wallet] = units
            sums.add_volume(wallet, "", rng.choice([0, 0, 5]))
        async with database.writing() as tx:
            await sums.record(tx, UP_TO_NOW)
        assert await kept(database) == [*await expected(database)], number
    await assert_ranks(database)
    assert all(await kept(database))


async def test_a7_a_bucket_of_before_the_parts_gets_them_with_its_next_change(
    database: Database,
) -> None:
    for wallet in WALLETS[:40]:
        sums = Sums()
        sums.add_gain(wallet, "", 500_000)
        async with database.writing() as tx:
            await sums.record(tx, UP_TO_NOW)
    async with database.writing() as tx:
        for table in (rank_parts, rank_ties):
            await tx.execute(table.delete())
    await assert_ranks(database)
    sums = Sums()
    sums.add_gain(WALLETS[40], "", 500_001)
    async with database.writing() as tx:
        await sums.record(tx, UP_TO_NOW)
    assert await kept(database) == [*await expected(database)]
    await assert_ranks(database)

"""A3: sums beyond 63 bits, which SQLite refuses and PostgreSQL has another type for."""

import random

import pytest
import sqlalchemy as sa
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, NOW_MS, an_address
from tests.store.live_sums import dump_sums, rebuild

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.edge.builders.keys import builder_code
from foretell.store.database import Database
from foretell.store.queries.referrals import ReferralFilter, load_received_shares
from foretell.store.tables import balances
from foretell.store.trading.referrals import record_referral
from foretell.store.wide_sums import read_wide, wide_sum

pytestmark = pytest.mark.anyio

LARGE = 2**62
TOTALS = ("trading_totals", "trading_total_changes", "traded_markets")
REFERRER = an_address("referrer")
SEEDED = random.Random(3)


@pytest.mark.parametrize(
    "amounts",
    [
        [],
        [0],
        [-1, 1],
        [LARGE, LARGE, LARGE],
        [AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX, -5],
        [-AMOUNT_UNITS_MAX, -AMOUNT_UNITS_MAX],
        [SEEDED.randrange(-AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX) for _ in range(50)],
    ],
)
async def test_a_wide_sum_is_that_of_integers(database: Database, amounts: list[int]) -> None:
    rows = [(an_address(f"wallet {place}"), "0", units, 1) for place, units in enumerate(amounts)]
    async with database.writing() as tx:
        await tx.insert_rows(balances, rows)
        assert read_wide(await tx.scalar(sa.select(wide_sum(balances.c.units)))) == sum(amounts)


async def three_large_trades(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await record_referral(tx, [an_address("ann")], REFERRER, 0)
        for _ in range(3):
            await rows.buy("ann", "rain", LARGE, LARGE)


async def test_a3_the_volume_of_referred_trades_is_exact(database: Database) -> None:
    await three_large_trades(database)
    wanted = ReferralFilter(REFERRER, builder_code(REFERRER))
    async with database.reading() as tx:
        [found] = await load_received_shares(tx, wanted, 10, 0)
    assert (found.exchange, found.volume_units) == (EXCHANGE, 3 * LARGE)


async def test_a3_rebuilt_totals_are_bounded_as_those_of_the_indexer(database: Database) -> None:
    await three_large_trades(database)
    kept = await dump_sums(database)
    await rebuild(database, NOW_MS, 1)
    built = await dump_sums(database)
    assert [built[name] for name in TOTALS] == [kept[name] for name in TOTALS]
    volumes = [row[3] for row in built["trading_total_changes"]]
    assert volumes == [LARGE, AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX]

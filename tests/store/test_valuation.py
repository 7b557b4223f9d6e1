from fractions import Fraction
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, TOKEN

from foretell.domain.exchange.order import OrderStatus, Side
from foretell.domain.exchange.tick_size import TICKS_PER_ONE
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.price_history import MINUTE_S
from foretell.domain.portfolio.prices import BookTop, current_price, listed_price
from foretell.store.database import Database
from foretell.store.quoted_columns import QUOTED, REPORTED, book_top, payout
from foretell.store.tables import markets, orders, payouts, quotes
from foretell.store.valuation import (
    FINEST_TICKS,
    Real,
    current_price_of_yes,
    current_price_of_yes_at,
    liquidity,
    listed_price_of_yes,
    listed_price_of_yes_at,
    of_token,
    read_liquidity,
)

pytestmark = pytest.mark.anyio

HUGE = 2**62


tops = st.builds(
    BookTop,
    st.just(100),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(51, 99),
    st.none() | st.integers(1, 99),
)
payouts_or_none = st.none() | st.builds(Payout, st.integers(0, HUGE), st.integers(1, HUGE))


async def select(database: Database, *columns: Real) -> sa.Row[Any]:
    async with database.reading() as tx:
        tables = markets.outerjoin(
            quotes, quotes.c.condition_id == markets.c.condition_id
        ).outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id)
        row = await tx.first(sa.select(*columns).select_from(tables))
        assert row is not None
        return row


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(top=tops, reported=payouts_or_none, is_yes=st.booleans())
async def test_the_database_sorts_by_the_displayed_prices(
    database: Database, top: BookTop, reported: Payout | None, *, is_yes: bool
) -> None:
    async with database.writing() as tx:
        for table in (quotes, payouts, markets):
            await tx.execute(table.delete())
        await tx.execute(sa.text("DELETE FROM conditions"))
        await tx.execute(sa.text("DELETE FROM events"))
        await tx.execute(sa.text("DELETE FROM event_tags"))
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", *top[1:])
        if reported is not None:
            await rows.resolve("rain", *reported)
    row = await select(
        database,
        of_token(current_price_of_yes(), sa.true() if is_yes else sa.false()),
        of_token(listed_price_of_yes(), sa.true() if is_yes else sa.false()),
        *QUOTED,
        *REPORTED,
    )
    assert book_top(row) == top
    assert payout(row) == reported
    assert list(row)[:2] == [
        pytest.approx(float(current_price(top, reported, is_yes=is_yes))),
        pytest.approx(float(listed_price(top, reported, is_yes=is_yes))),
    ]


async def test_a_market_without_a_quote_is_valued_at_one_half(database: Database) -> None:
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
        await tx.execute(quotes.delete())
    row = await select(database, current_price_of_yes(), listed_price_of_yes(), *QUOTED)
    assert book_top(row) is None
    assert list(row)[:2] == [0.5, 0.5]


async def test_a_past_price_is_that_of_the_last_minute_before(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quoted_at("rain", NOW_S - 600, 10, 12)
        await rows.quoted_at("rain", NOW_S - 300, 20, 40, 77)
        await rows.quoted_at("rain", NOW_S, 90, 92)
        await rows.resolve("rain", 1, 0, NOW_S + 600)
    condition = markets.c.condition_id
    row = await select(
        database,
        current_price_of_yes_at(NOW_S, condition),
        listed_price_of_yes_at(NOW_S, NOW_S // MINUTE_S, condition),
        current_price_of_yes_at(NOW_S - 300, condition),
        current_price_of_yes_at(NOW_S - 600, condition),
        listed_price_of_yes_at(NOW_S - 600, (NOW_S - 600) // MINUTE_S, condition),
        current_price_of_yes_at(NOW_S + 600, condition),
        current_price_of_yes_at(NOW_S + 601, condition),
    )
    assert [None if price is None else Fraction(str(price)) for price in row] == [
        Fraction(77, 100),
        Fraction(30, 100),
        Fraction(11, 100),
        Fraction(1, 2),
        None,
        Fraction(91, 100),
        Fraction(1),
    ]


async def test_liquidity_is_the_value_of_resting_orders_near_the_price(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 49, 51)
        await rows.rest("alice", "rain", Side.BUY, 45, 100 * TOKEN)
        await rows.rest("alice", "rain", Side.BUY, 44, 100 * TOKEN)
        await rows.rest("alice", "rain", Side.SELL, 55, 100 * TOKEN, matched_units=90 * TOKEN)
        await rows.rest("alice", "rain", Side.SELL, 56, 100 * TOKEN)
        await rows.rest("bob", "rain", Side.BUY, 48, 100 * TOKEN, is_yes=False)
        await rows.rest("bob", "rain", Side.BUY, 50, 7 * TOKEN, status=OrderStatus.CANCELED)
    [text] = await select(database, liquidity())
    assert read_liquidity(text) == (45 + 5.5 + 52) * TOKEN


@pytest.mark.parametrize(
    ("left_units", "expected"),
    [
        ([3, 3], 3),
        ([1, 1, 1], 2),
        ([2**53 + 1] * 3, 3 * 2**52 + 2),
        ([2**62 + 1] * 5, 5 * 2**61 + 2),
        ([], 0),
    ],
)
async def test_liquidity_is_added_up_exactly_and_rounded_once(
    database: Database, left_units: list[int], expected: int
) -> None:
    """Each order counts half of what is left of it; every second one has finer ticks."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 49, 51)
        for units in left_units:
            odd = units % 2
            await rows.rest("alice", "rain", Side.BUY, 50, units + odd, matched_units=odd)
        finer = {"price_ticks": 5_000, "ticks_per_one": 10_000}
        await tx.execute(orders.update().where(orders.c.sequence % 2 == 0).values(finer))
    [text] = await select(database, liquidity())
    assert read_liquidity(text) == expected


def test_every_tick_is_a_whole_number_of_the_finest() -> None:
    assert [FINEST_TICKS % ticks for ticks in TICKS_PER_ONE] == [0] * len(TICKS_PER_ONE)


async def test_a_market_without_orders_has_no_liquidity(database: Database) -> None:
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
    [text] = await select(database, liquidity())
    assert read_liquidity(text) == 0

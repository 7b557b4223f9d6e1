"""Values of tokens, as SQL expressions to sort and filter by.

The rules are those of `domain/portfolio/prices.py`, which defines the displayed values; a test compares
the two. Prices here are floating point, because oracles may report numerators that overflow any product,
and an order of rows needs no last digit; amounts are integers. Queries join `quotes` and `payouts` themselves; a past price
comes from `quote_points`, and from payouts that were reported before.
"""

from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.exchange.tick_size import TICKS_PER_ONE
from foretell.domain.portfolio.failed_volumes import DAY_MINUTES
from foretell.domain.portfolio.price_history import MINUTE_S
from foretell.domain.portfolio.prices import LIQUIDITY_REACH, NARROW_SPREAD_MAX
from foretell.domain.values.amounts import nearest
from foretell.store.tables import (
    conditions,
    failed_volumes,
    is_live,
    markets,
    orders,
    payouts,
    positions,
    quote_points,
    quotes,
)
from foretell.store.wide_sums import bounded_sum, high_half, low_half, read_wide, sum_of_halves

MINUTE_MS: Final = 1000 * MINUTE_S
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
MONTH_MS: Final = 30 * DAY_MS
YEAR_MS: Final = 365 * DAY_MS
VOLUME_PERIODS_MS: Final = (DAY_MS, WEEK_MS, MONTH_MS, YEAR_MS)
CHANGE_PERIODS_MS: Final = (HOUR_MS, DAY_MS, WEEK_MS, MONTH_MS)
"""The periods over which volumes are added up, and over which changes of prices are listed."""

Real = sa.ColumnElement[Any]
Parameter = sa.BindParameter[int]
"""Stands for a number in a statement that is built once."""
Columns = sa.ColumnCollection[str, sa.ColumnElement[Any]]


def real(expression: Any) -> Real:
    """Return the expression in floating point."""
    return sa.cast(expression, sa.Double)


def current_price_of_yes() -> Real:
    """Return the price at which Yes is valued."""
    return _price_of_yes(payouts.c.payout_yes.is_not(None), _current(quotes.c))


def quoted_price(ticks: Real) -> Real:
    """Return the price of a quote's ticks, null where it has none."""
    return real(ticks) / real(quotes.c.ticks_per_one)


def listed_price_of_yes() -> Real:
    """Return the price of Yes in a market's listing."""
    return _price_of_yes(payouts.c.payout_yes.is_not(None), _listed(quotes.c))


def current_price_of_yes_at(at_s: int, condition_id: sa.ColumnElement[Any]) -> Real:
    """Return the price at which Yes was valued; one half before the first quote."""
    then = quote_points.alias()
    return _price_of_yes(
        payouts.c.timestamp_s < at_s,
        sa.func.coalesce(_at(at_s // MINUTE_S, condition_id, then, _current(then.c)), real(1) / 2),
    )


def listed_price_of_yes_at(
    at_s: int | Parameter, minute: int | Parameter, condition_id: sa.ColumnElement[Any]
) -> Real:
    """Return the price of Yes in a market's listing at a time and in its minute, null before the first quote."""
    then = quote_points.alias()
    return _price_of_yes(
        payouts.c.timestamp_s < at_s, _at(minute, condition_id, then, _listed(then.c))
    )


IS_YES: Final = positions.c.token_id == conditions.c.token_yes
"""Whether a position holds the Yes of its condition."""


def of_token(price_of_yes: Real, is_yes: sa.ColumnElement[bool]) -> Real:
    """Return the price of a token, which is Yes or No."""
    return sa.case((is_yes, price_of_yes), else_=1 - price_of_yes)


VOLUME: Final = quotes.c.volume_units - quotes.c.failed_units
"""A market's volume since it opened: that of its trades that have not failed to settle. Null without a quote."""


def volume_since(first_minute: int | Parameter, first_day: int | Parameter) -> Real:
    """Return a market's volume since a minute, of trades that have not failed to settle; `periods_since` has both.

    The points of a market have the running total of all its trades, so this is the difference of two of them, without
    what has failed. A total that was cut at what its column holds may be less than that: then this is negative.
    """
    now, before = (quote_points.alias() for _ in range(2))
    is_before = before.c.minute < first_minute
    traded = _newest_volume(now, sa.true()) - _newest_volume(before, is_before)
    return traded - _failed_since(first_minute, first_day)


def _newest_volume(point: Any, is_wanted: sa.ColumnElement[bool]) -> Real:
    newest = (
        sa.select(point.c.volume_units)
        .where(point.c.condition_id == markets.c.condition_id, is_wanted)
        .order_by(point.c.minute.desc())
        .limit(1)
        .correlate(markets)
        .scalar_subquery()
    )
    return sa.func.coalesce(newest, 0)


def _failed_since(first_minute: int | Parameter, first_day: int | Parameter) -> Real:
    """Return what has failed of a market's trades since a minute: in each period there is one row at most."""
    minutes, days = (failed_volumes.alias() for _ in range(2))
    parts = sa.union_all(
        _of_periods(minutes, 1, minutes.c.first_minute >= first_minute).where(
            minutes.c.first_minute < first_day
        ),
        _of_periods(days, DAY_MINUTES, days.c.first_minute >= first_day),
    ).subquery()
    return sa.select(bounded_sum(parts.c.units)).scalar_subquery()


def _of_periods(of: Any, length_minutes: int, is_wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    is_length = of.c.length_minutes == length_minutes
    return (
        sa.select(of.c.units)
        .where(of.c.condition_id == markets.c.condition_id, is_length, is_wanted)
        .correlate(markets)
    )


FINEST_TICKS: Final = max(TICKS_PER_ONE)
"""Ticks of every market are whole numbers of these, so that amounts at different ticks are added up as integers."""


def liquidity() -> sa.ScalarSelect[str]:
    """Return the value of a condition's resting orders near its listed price, as a text that `read_liquidity` reads."""
    ticks = sa.case(
        (orders.c.is_yes, orders.c.price_ticks),
        else_=orders.c.ticks_per_one - orders.c.price_ticks,
    )
    price = real(ticks) / real(orders.c.ticks_per_one)
    middle = listed_price_of_yes()
    # In floating point 0.9 of 0.5 may be slightly more than 0.45; the margin accepts it.
    reach = middle * LIQUIDITY_REACH.numerator / LIQUIDITY_REACH.denominator + real(1) / 10**9
    left_units = orders.c.size_units - orders.c.matched_units
    finest_ticks = ticks * FINEST_TICKS // orders.c.ticks_per_one
    low = low_half(left_units) * finest_ticks
    worth = sum_of_halves(high_half(left_units) * finest_ticks + high_half(low), low_half(low))
    return (
        sa.select(worth)
        .where(
            orders.c.condition_id == quotes.c.condition_id,
            is_live,
            sa.func.abs(price - middle) <= reach,
        )
        .correlate(quotes, payouts)
        .scalar_subquery()
    )


def read_liquidity(text: str) -> int:
    """Return the value in such a text in base units, rounded to the nearest."""
    return nearest(read_wide(text), FINEST_TICKS)


def _price_of_yes(is_resolved: sa.ColumnElement[bool], traded: Real) -> Real:
    whole = real(payouts.c.payout_yes) + real(payouts.c.payout_no)
    return sa.case((is_resolved, real(payouts.c.payout_yes) / whole), else_=traded)


def _current(quoted: Columns) -> Real:
    width = quoted.best_ask_ticks - quoted.best_bid_ticks
    reach = NARROW_SPREAD_MAX.numerator * quoted.ticks_per_one
    return _traded_price(quoted, width * NARROW_SPREAD_MAX.denominator <= reach)


def _listed(quoted: Columns) -> Real:
    has_both = quoted.best_bid_ticks.is_not(None) & quoted.best_ask_ticks.is_not(None)
    return _traded_price(quoted, has_both)


def _traded_price(quoted: Columns, is_midpoint: sa.ColumnElement[bool]) -> Real:
    both = real(quoted.best_bid_ticks + quoted.best_ask_ticks)
    ticks = real(quoted.ticks_per_one)
    return sa.case(
        (is_midpoint, both / (2 * ticks)),
        (quoted.last_price_ticks.is_not(None), real(quoted.last_price_ticks) / ticks),
        else_=real(1) / 2,
    )


def _at(
    minute: int | Parameter, condition_id: sa.ColumnElement[Any], then: sa.FromClause, price: Real
) -> Real:
    """Return the price in the last full minute before one."""
    return (
        sa.select(price)
        .where(then.c.condition_id == condition_id, then.c.minute < minute)
        .order_by(then.c.minute.desc())
        .limit(1)
        .correlate_except(then)
        .scalar_subquery()
    )

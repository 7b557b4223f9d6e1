import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.failed_volumes import (
    DAY_MINUTES,
    PeriodsSince,
    SumPeriod,
    periods_of,
    periods_since,
)

MIDNIGHT = 20_000 * DAY_MINUTES
LAST = MIDNIGHT + DAY_MINUTES - 1


@pytest.mark.parametrize("minute", [MIDNIGHT, MIDNIGHT + 1, LAST])
def test_a_trade_counts_in_its_minute_and_in_its_day(minute: int) -> None:
    assert periods_of(minute) == (SumPeriod(1, minute), SumPeriod(DAY_MINUTES, MIDNIGHT))


@pytest.mark.parametrize(
    ("minute", "first_day"),
    [(MIDNIGHT, MIDNIGHT), (MIDNIGHT + 1, LAST + 1), (LAST, LAST + 1), (LAST + 1, LAST + 1)],
)
def test_the_days_begin_with_the_next_midnight(minute: int, first_day: int) -> None:
    assert periods_since(minute) == PeriodsSince(minute, first_day)


@given(st.integers(0, 4 * DAY_MINUTES), st.integers(0, 4 * DAY_MINUTES))
def test_a_minute_is_in_one_of_the_periods_since_another_if_it_is_not_before_it(
    minute: int, since: int
) -> None:
    wanted = periods_since(since)
    of_minute, of_day = periods_of(minute)
    counted = [
        wanted.first_minute <= of_minute.first_minute < wanted.first_day,
        of_day.first_minute >= wanted.first_day,
    ]
    assert sum(counted) == (minute >= since)
    assert wanted.first_day - wanted.first_minute < DAY_MINUTES

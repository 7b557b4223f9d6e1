from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.gains import NOTHING, SUM_MAX, Held, bounded, gain_units
from foretell.domain.portfolio.periods import WINDOWS, Period
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX


def test_a_gain_is_what_was_realized_and_the_value_beyond_the_cost() -> None:
    held = Held(size_units=10, cost_units=4, realized_units=3)
    assert gain_units(held, Fraction(7, 10), is_yes=True) == 3 + 7 - 4
    assert gain_units(held, Fraction(7, 10), is_yes=False) == 3 + 3 - 4
    assert gain_units(NOTHING, Fraction(7, 10), is_yes=True) == 0


@given(size=st.integers(0, 10**12), ticks=st.integers(1, 99))
def test_a_complete_set_is_worth_its_size_to_the_nearest_unit(size: int, ticks: int) -> None:
    price = Fraction(ticks, 100)
    held = Held(size, 0, 0)
    both = gain_units(held, price, is_yes=True) + gain_units(held, price, is_yes=False)
    assert abs(both - size) <= 1


@pytest.mark.parametrize(
    ("units", "kept"), [(3, 3), (2 * SUM_MAX, SUM_MAX), (-SUM_MAX - 1, -SUM_MAX)]
)
def test_a_sum_stays_within_its_bound(units: int, kept: int) -> None:
    assert bounded(units) == kept
    assert 2 * SUM_MAX <= AMOUNT_UNITS_MAX


def test_a_window_has_the_length_of_its_days() -> None:
    assert [period.seconds for period in WINDOWS] == [86_400, 7 * 86_400, 30 * 86_400]
    assert Period.ALL not in WINDOWS

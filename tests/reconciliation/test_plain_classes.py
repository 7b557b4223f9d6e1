"""The classes that are read off digits, against those that the index computes with shifts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio import rank_buckets
from foretell.domain.portfolio.gains import SUM_MAX
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.reconciliation import comparison, plain_classes
from foretell.reconciliation.leaderboards import comparison as leaderboards
from foretell.reconciliation.leaderboards import rank_counts
from foretell.store.index import amount_classes
from foretell.store.index.activity_roles import ROLES
from foretell.store.index.generations import RunningSum

AMOUNTS = st.integers(-SUM_MAX, SUM_MAX) | st.integers(-300, 300)
COSTS = st.integers(0, AMOUNT_UNITS_MAX) | st.integers(0, 300)


@given(units=AMOUNTS)
def test_buckets_and_parts_are_those_of_the_leading_digits(units: int) -> None:
    assert plain_classes.bucket_of(units) == rank_buckets.bucket_of(units)
    assert plain_classes.first_of_part(units) == rank_buckets.part_of(units).first


@given(one=AMOUNTS, other=AMOUNTS)
def test_buckets_and_parts_are_in_the_order_of_amounts(one: int, other: int) -> None:
    least, most = sorted((one, other))
    assert plain_classes.bucket_of(least) <= plain_classes.bucket_of(most)
    assert plain_classes.first_of_part(least) <= plain_classes.first_of_part(most)


@given(units=COSTS)
def test_classes_of_amounts_are_those_of_the_leading_digits(units: int) -> None:
    assert plain_classes.class_of(units) == amount_classes.class_of(units)


@given(one=COSTS, other=COSTS)
def test_classes_are_in_the_order_of_amounts(one: int, other: int) -> None:
    least, most = sorted((one, other))
    assert plain_classes.class_of(least) <= plain_classes.class_of(most)


@given(generation=st.integers(0, 10**6), period=st.sampled_from(Period))
def test_the_period_of_a_key_is_its_last_digits(generation: int, period: Period) -> None:
    assert plain_classes.days_of(RunningSum(generation, period).key) == period


@pytest.mark.parametrize(("role", "words"), list(enumerate(ROLES)))
def test_the_role_of_an_activity_is_that_of_its_words(
    role: int, words: tuple[str, str | None, bool]
) -> None:
    kind, side, is_taker = words
    assert plain_classes.role_of(kind, side, is_taker=is_taker) == role


def test_the_comparison_has_no_definition_of_the_index() -> None:
    used = [vars(rank_counts)[name] for name in ("bucket_of", "first_of_part", "days_of")]
    used += [vars(leaderboards)["days_of"], vars(comparison)["class_of"]]
    used += [vars(comparison)["role_of"]]
    assert {each.__module__ for each in used} == {plain_classes.__name__}

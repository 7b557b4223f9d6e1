"""Budgets of 24 hours, from sums by the hour."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.relayer import (
    BuilderGasReached,
    BuilderLimitReached,
    RelayerGasReached,
)
from foretell.domain.relay.budgets import (
    DAY_MS,
    HOUR_MS,
    HOURS_COUNTED,
    BuilderBudget,
    HourlyUse,
    check_all_owners,
    check_builder,
    first_hour,
    hour_of,
)

NOW_MS: Final = 1_000 * HOUR_MS + 1
NO_LIMIT: Final = BuilderBudget(0, 0)
OLD, NEW = HourlyUse(980, 2, 20), HourlyUse(1_000, 1, 10)
"""Three transactions that used 30 gas: the older two count until the hour 1005 begins."""


def test_a_budget_of_transactions_ends_with_the_last_of_them() -> None:
    check_builder(BuilderBudget(4, 0), [NEW, OLD], 10, NOW_MS)
    with pytest.raises(BuilderLimitReached) as refused:
        check_builder(BuilderBudget(3, 0), [NEW, OLD], 10, NOW_MS)
    assert refused.value.details == {"most": 3, "retry_after_s": 5 * 3_600}


def test_a_budget_of_an_accounts_gas_is_used_to_the_last_unit() -> None:
    check_builder(BuilderBudget(0, 40), [NEW, OLD], 10, NOW_MS)
    with pytest.raises(BuilderGasReached) as refused:
        check_builder(BuilderBudget(0, 39), [NEW, OLD], 10, NOW_MS)
    assert refused.value.details == {
        "most": 39,
        "used": 30,
        "needed": 10,
        "retry_after_s": 5 * 3_600,
    }


def test_the_budget_of_all_owners_is_used_to_the_last_unit() -> None:
    check_all_owners(40, [NEW, OLD], 10, NOW_MS)
    with pytest.raises(RelayerGasReached) as refused:
        check_all_owners(39, [NEW, OLD], 10, NOW_MS)
    assert refused.value.details == {
        "most": 39,
        "used": 30,
        "needed": 10,
        "retry_after_s": 5 * 3_600,
    }


def test_a_budget_of_zero_is_none() -> None:
    check_builder(NO_LIMIT, [NEW, OLD], 10**15, NOW_MS)
    check_all_owners(0, [NEW, OLD], 10**15, NOW_MS)


def test_what_no_wait_makes_fit_waits_for_a_day() -> None:
    with pytest.raises(RelayerGasReached) as refused:
        check_all_owners(9, [], 10, NOW_MS)
    assert refused.value.details["retry_after_s"] == DAY_MS // 1000


@given(at_ms=st.integers(0, 10**13), age_ms=st.integers(0, 26 * HOUR_MS))
def test_a_transaction_counts_for_a_day_and_for_less_than_an_hour_longer(
    at_ms: int, age_ms: int
) -> None:
    counts = hour_of(at_ms) >= first_hour(at_ms + age_ms)
    assert counts or age_ms > DAY_MS
    assert not counts or age_ms < HOURS_COUNTED * HOUR_MS


@given(
    amounts=st.lists(st.integers(0, 50), min_size=HOURS_COUNTED, max_size=HOURS_COUNTED),
    most=st.integers(1, 200),
    needed=st.integers(1, 100),
)
def test_after_its_wait_a_transaction_fits_and_a_second_earlier_it_does_not(
    amounts: list[int], most: int, needed: int
) -> None:
    first = first_hour(NOW_MS)
    hours = [HourlyUse(first + place, 1, gas) for place, gas in enumerate(amounts)]

    def wait_s(now_ms: int) -> int:
        counted = [each for each in hours if each.hour >= first_hour(now_ms)]
        try:
            check_all_owners(most, counted, needed, now_ms)
        except RelayerGasReached as refused:
            return int(refused.details["retry_after_s"])
        return 0

    wait = wait_s(NOW_MS)
    assert wait_s(NOW_MS + wait * 1000) == (DAY_MS // 1000 if needed > most else 0)
    assert not wait or wait_s(NOW_MS + (wait - 1) * 1000) > 0

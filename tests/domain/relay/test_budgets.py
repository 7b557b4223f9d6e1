"""Budgets of 24 hours, from sums by the hour."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.relayer import (
    BuilderGasReached,
    BuilderLimitReached,
    RelayerGasReached,
    RelayerGasReserved,
)
from foretell.domain.relay.budgets import (
    DAY_MS,
    HOUR_MS,
    HOURS_COUNTED,
    OWNERS_SERVED,
    BuilderBudget,
    HourlyUse,
    OwnerUse,
    check_all_owners,
    check_builder,
    check_reserve,
    first_hour,
    hour_of,
    is_reserved,
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


EMPTY, KNOWN = OwnerUse(0, is_known=False), OwnerUse(0, is_known=True)
GAS_MAX: Final = 200 * OWNERS_SERVED


def used(gas: int) -> list[HourlyUse]:
    return [OLD._replace(gas=gas - 1), NEW._replace(gas=1)]


def test_the_first_half_of_the_gas_is_for_everybody() -> None:
    check_reserve(GAS_MAX, used(GAS_MAX // 2), EMPTY, GAS_MAX, NOW_MS)
    check_reserve(0, used(GAS_MAX), EMPTY, GAS_MAX, NOW_MS)
    assert not is_reserved(GAS_MAX, used(GAS_MAX // 2))
    assert is_reserved(GAS_MAX, used(GAS_MAX // 2 + 1))
    assert not is_reserved(0, used(GAS_MAX))


def test_the_second_half_is_for_known_owners_alone() -> None:
    with pytest.raises(RelayerGasReserved, match="this owner's have not") as refused:
        check_reserve(GAS_MAX, used(GAS_MAX // 2 + 1), EMPTY, 1, NOW_MS)
    assert refused.value.details == {
        "most": 0,
        "used": 0,
        "needed": 1,
        "retry_after_s": 5 * 3_600,
    }


def test_a_known_owner_has_a_part_of_what_is_left() -> None:
    left = 50 * OWNERS_SERVED
    hours, owner = used(GAS_MAX - left), KNOWN._replace(gas=20)
    check_reserve(GAS_MAX, hours, owner, 30, NOW_MS)
    with pytest.raises(RelayerGasReserved, match="this owner may have 50 of it in 24 hours"):
        check_reserve(GAS_MAX, hours, owner, 31, NOW_MS)


@given(st.integers(1, 40), st.integers(10_000, 10**6))
def test_owners_who_take_all_that_they_may_leave_as_much_to_the_next(
    owners: int, gas_max: int
) -> None:
    """Each takes units of gas until it is refused; the next one still has a part."""
    used_gas = gas_max // 2 + 1
    for _ in range(owners):
        share = (gas_max - used_gas) // OWNERS_SERVED
        owner = KNOWN._replace(gas=share)
        with pytest.raises(RelayerGasReserved):
            check_reserve(gas_max, [NEW._replace(gas=used_gas)], owner, 1, NOW_MS)
        used_gas += share
    assert gas_max - used_gas >= (gas_max - gas_max // 2 - 1) * 0.98**owners


def test_a_known_owner_may_have_one_transaction_however_little_is_left() -> None:
    hours = used(GAS_MAX - 10)
    check_reserve(GAS_MAX, hours, KNOWN, 10, NOW_MS)
    for owner, gas in ((KNOWN, 11), (KNOWN._replace(gas=1), 9), (EMPTY, 10)):
        with pytest.raises(RelayerGasReserved):
            check_reserve(GAS_MAX, hours, owner, gas, NOW_MS)

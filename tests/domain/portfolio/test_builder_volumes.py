"""The sums of builders' days: whatever days of wallets change, they are those of a fresh count."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import NOW_MS, a_word, an_address

from foretell.domain.portfolio.builder_volumes import (
    FIRST_DAY,
    NO_SUMS,
    NOTHING,
    BuilderDay,
    BuilderSums,
    BuilderUser,
    TradedFills,
    UserDay,
    day_of,
    first_day,
    sum_changes,
)
from foretell.domain.portfolio.periods import Period

ONE, OTHER = a_word("one"), a_word("other")
USER_DAYS = st.builds(
    UserDay,
    st.sampled_from([ONE, OTHER]),
    st.sampled_from([an_address("alice"), an_address("bob")]),
    st.integers(0, 2),
)
FILLS = st.lists(
    st.tuples(USER_DAYS, st.builds(TradedFills, st.integers(1, 2**70), st.integers(1, 3))),
    max_size=12,
)


def last_days(kept: dict[UserDay, TradedFills]) -> dict[BuilderUser, int]:
    last: dict[BuilderUser, int] = {}
    for (builder, wallet, day), traded in kept.items():
        if traded.fills:
            user = BuilderUser(builder, wallet)
            last[user] = max(day, last.get(user, 0))
    return last


def counted(
    kept: dict[UserDay, TradedFills],
) -> tuple[dict[Any, BuilderSums], dict[Any, BuilderSums]]:
    """Return the sums of days and of builders, counted from all days of wallets."""
    days: dict[Any, BuilderSums] = {}
    totals: dict[Any, BuilderSums] = {}
    for key, traded in kept.items():
        day = BuilderDay(key.builder, key.day)
        days[day] = days.get(day, NO_SUMS).plus(BuilderSums(*traded, bool(traded.fills)))
        totals[key.builder] = totals.get(key.builder, NO_SUMS).plus(BuilderSums(*traded))
    for user, last in last_days(kept).items():
        ended = BuilderDay(user.builder, last)
        days[ended] = days[ended].plus(BuilderSums(0, 0, last_users=1))
        totals[user.builder] = totals[user.builder].plus(BuilderSums(0, 0, 1))
    return days, totals


def changed(
    before: dict[UserDay, TradedFills], changes: dict[UserDay, TradedFills]
) -> dict[UserDay, TradedFills]:
    return {
        key: before.get(key, NOTHING).plus(changes.get(key, NOTHING)) for key in before | changes
    }


def gathered(fills: list[tuple[UserDay, TradedFills]], sign: int = 1) -> dict[UserDay, TradedFills]:
    sums: dict[UserDay, TradedFills] = {}
    for key, (units, number) in fills:
        sums[key] = sums.get(key, NOTHING).plus(TradedFills(sign * units, sign * number))
    return sums


@given(before=FILLS, added=FILLS, data=st.data())
def test_the_changes_of_sums_lead_from_one_count_to_the_next(
    before: list[tuple[UserDay, TradedFills]],
    added: list[tuple[UserDay, TradedFills]],
    data: st.DataObject,
) -> None:
    failed = [fill for fill in before if data.draw(st.booleans())]
    kept = gathered(before)
    changes = changed(gathered(added), gathered(failed, -1))
    after = changed(kept, changes)
    fills_before = {key: traded.fills for key, traded in kept.items()}
    sums = sum_changes(changes, fills_before, last_days(kept), last_days(after))
    changes_by_key: tuple[Mapping[Any, BuilderSums], ...] = sums
    for was, now, by_key in zip(counted(kept), counted(after), changes_by_key, strict=True):
        assert by_key.keys() <= now.keys()
        for key in now:
            change = by_key.get(key, NO_SUMS)
            assert was.get(key, NO_SUMS).plus(change) == now[key]


@pytest.mark.parametrize(
    ("period", "days"), [(Period.DAY, 1), (Period.WEEK, 7), (Period.MONTH, 30)]
)
def test_a_period_has_the_present_day_and_those_before_it(period: Period, days: int) -> None:
    assert day_of(NOW_MS) - first_day(period, NOW_MS) + 1 == days


def test_the_period_of_all_days_begins_with_the_first() -> None:
    assert first_day(Period.ALL, NOW_MS) == FIRST_DAY == day_of(0)


@pytest.mark.parametrize(("at_ms", "day"), [(86_399_999, 0), (86_400_000, 1)])
def test_a_day_begins_at_midnight_in_utc(at_ms: int, day: int) -> None:
    assert day_of(at_ms) == day

"""Places of trades that wait to be sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.exchange.waiting.places import few_places_of, free_places, places_of


@given(st.integers(0, 100), st.lists(st.integers(0, 100), min_size=1, max_size=4))
def test_places_go_by_halves_and_none_that_somebody_needs_stays_free(
    limit: int, waiting: list[int]
) -> None:
    taken = places_of(limit, waiting)
    assert all(0 <= of_group <= wanted for of_group, wanted in zip(taken, waiting, strict=True))
    assert sum(taken) == min(limit, sum(waiting))
    left = limit
    for of_group, wanted in zip(taken[:-1], waiting[:-1], strict=True):
        assert of_group >= min(wanted, left - left // 2)
        left //= 2
    assert taken[-1] >= min(waiting[-1], left if len(waiting) > 1 else limit)


@given(st.integers(0, 3), st.lists(st.lists(st.integers(0, 9)), min_size=3, max_size=3))
def test_of_few_places_one_is_for_the_favored_group_and_the_longest_due_have_the_others(
    limit: int, due_at_ms: list[list[int]]
) -> None:
    groups = [sorted(times) for times in due_at_ms]
    taken = few_places_of(limit, groups)
    assert sum(taken) == min(limit, sum(map(len, groups)))
    assert taken[0] >= min(limit, len(groups[0]), 1)
    later = [at for times, count in zip(groups, taken, strict=True) for at in times[count:]]
    others = [
        at
        for group, (times, count) in enumerate(zip(groups, taken, strict=True))
        for at in times[group == 0 : count]
    ]
    assert max(others, default=0) <= min(later, default=9)


@pytest.mark.parametrize(
    ("most", "taken", "free"),
    [
        (32, 0, 32),
        (32, 28, 4),
        (32, 29, 0),
        (32, 40, 0),
        (8, 4, 4),
        (8, 5, 0),
        (7, 6, 1),
        (1, 0, 1),
    ],
)
def test_places_are_taken_when_every_group_can_have_one(most: int, taken: int, free: int) -> None:
    assert free_places(most, taken) == free

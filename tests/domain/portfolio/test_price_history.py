from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.portfolio.price_history import (
    DAY_S,
    FIDELITY_MINUTES_MAX,
    HOUR_S,
    MINUTE_S,
    POINTS_PER_BATCH_MAX,
    Buckets,
    buckets,
    history_price,
    parse_interval,
    points_of_each,
    present_end_s,
)
from foretell.domain.portfolio.prices import BookTop


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("15m", 900),
        ("1h", 3600),
        ("6h", 6 * 3600),
        ("1d", 86_400),
        ("1w", 7 * 86_400),
        ("1m", 30 * 86_400),
        ("max", None),
        ("all", None),
    ],
)
def test_an_interval_has_the_length_of_its_name(text: str, seconds: int | None) -> None:
    assert parse_interval(text) == seconds


@pytest.mark.parametrize("text", ["", "2d", "1M", "MAX", "1 h"])
def test_an_unknown_interval_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(MalformedQuery, match="interval must be one of 5m, 15m, 1h"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("span_s", "step_s"),
    [
        (0, MINUTE_S),
        (HOUR_S, MINUTE_S),
        (999 * MINUTE_S, MINUTE_S),
        (999 * MINUTE_S + 1, 5 * MINUTE_S),
        (7 * DAY_S, 30 * MINUTE_S),
        (30 * DAY_S, 3 * HOUR_S),
        (365 * DAY_S, 12 * HOUR_S),
    ],
)
def test_without_a_fidelity_the_finest_fitting_step_is_used(span_s: int, step_s: int) -> None:
    start_s = 10_000 * DAY_S
    assert buckets(start_s, start_s + span_s, None).step_s == step_s


@pytest.mark.parametrize(("second", "end"), [(0, 0), (1, 60), (59, 60), (60, 60), (61, 120)])
def test_a_span_that_reaches_to_now_ends_with_the_minute_that_runs(second: int, end: int) -> None:
    assert present_end_s(10_000 * DAY_S + second) == 10_000 * DAY_S + end


def test_half_a_day_is_aligned_to_midnight_and_noon() -> None:
    start_s = 10_000 * DAY_S + 5
    assert buckets(start_s, start_s + 365 * DAY_S, None).first_end_s % (12 * HOUR_S) == 0


def test_a_fidelity_with_few_enough_points_is_used_as_it_is() -> None:
    assert buckets(420, HOUR_S, 7) == Buckets(7 * MINUTE_S, HOUR_S, 7 * MINUTE_S)


def test_a_fidelity_that_makes_too_many_points_is_coarsened() -> None:
    assert buckets(0, 1998 * MINUTE_S, 1).step_s == 2 * MINUTE_S
    assert buckets(0, 1999 * MINUTE_S, 1).step_s == 3 * MINUTE_S


@pytest.mark.parametrize(("start_s", "end_s"), [(7200, 3600), (70, 65), (1, 0)])
def test_a_span_that_ends_before_it_begins_has_no_buckets(start_s: int, end_s: int) -> None:
    made = buckets(start_s, end_s, None)
    assert made.first_end_s > made.last_end_s


@given(
    start_s=st.integers(0, 10**10),
    span_s=st.integers(0, 10**9),
    fidelity=st.none() | st.integers(1, FIDELITY_MINUTES_MAX),
    histories=st.integers(1, 20),
)
def test_buckets_cover_the_span_with_few_enough_points(
    start_s: int, span_s: int, fidelity: int | None, histories: int
) -> None:
    points_max = points_of_each(histories)
    assert histories * points_max <= POINTS_PER_BATCH_MAX
    made = buckets(start_s, start_s + span_s, fidelity, points_max)
    assert made.first_end_s % made.step_s == 0 or made.first_end_s == made.last_end_s
    assert made.step_s % MINUTE_S == made.last_end_s % MINUTE_S == 0
    assert made.first_end_s - made.step_s <= start_s
    assert start_s + span_s <= made.last_end_s < start_s + span_s + MINUTE_S
    assert -(-(made.last_end_s - made.first_end_s) // made.step_s) + 1 <= points_max


@pytest.mark.parametrize(
    ("top", "price"),
    [
        (BookTop(100, 40, 60, 10), Fraction(1, 2)),
        (BookTop(100, 1, 99, None), Fraction(1, 2)),
        (BookTop(100, None, 60, 10), Fraction(1, 10)),
        (BookTop(100, 40, None, None), None),
        (BookTop(100), None),
    ],
)
def test_a_history_shows_the_midpoint_or_else_the_last_price(
    top: BookTop, price: Fraction | None
) -> None:
    assert history_price(top) == price

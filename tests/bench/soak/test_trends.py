"""Trends of a soak: slopes, their noise, and verdicts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.bench.rigs.soak.trends import (
    GROWTH_BARS,
    LEVEL_BARS,
    GrowthBar,
    LevelBar,
    TrendVerdict,
    growth_words,
    judge_all,
    judge_growth,
    judge_level,
    slope_of,
)

BAR = GrowthBar("memory", 0.02, "a reason")
HOUR = [{"at_s": at_s * 10.0} for at_s in range(1, 361)]


def grown(per_hour: float, noise: float = 0.0, first: float = 100.0) -> list[dict[str, float]]:
    """Return samples of a value that grows by this much in an hour, a noise above it and below."""
    return [
        {
            **each,
            "memory": first + per_hour * each["at_s"] / 3600 + (noise if place % 2 else -noise),
        }
        for place, each in enumerate(HOUR)
    ]


@given(
    per_hour=st.floats(-1e3, 1e3, allow_nan=False),
    first=st.floats(0, 1e4, allow_nan=False),
)
def test_a_straight_line_has_its_slope_and_no_noise(per_hour: float, first: float) -> None:
    slope = slope_of(grown(per_hour, first=first), "memory")
    assert slope is not None
    assert math.isclose(slope.per_hour, per_hour, rel_tol=1e-6, abs_tol=1e-6)
    assert slope.error_per_hour < 1e-6


def test_the_samples_of_the_warm_up_do_not_count() -> None:
    samples = grown(0.0)
    for each in samples[:48]:
        each["memory"] = 1.0
    slope = slope_of(samples, "memory")
    assert slope is not None
    assert (slope.mean, slope.per_hour) == (100.0, 0.0)


@pytest.mark.parametrize(
    ("per_hour", "noise", "verdict"),
    [
        (0.0, 0.0, TrendVerdict.MET),
        (1.0, 0.5, TrendVerdict.MET),
        (-50.0, 0.0, TrendVerdict.MET),
        (5.0, 0.5, TrendVerdict.MISSED),
        (1.9, 20.0, TrendVerdict.NOISY),
        (3.0, 20.0, TrendVerdict.NOISY),
    ],
)
def test_a_growth_is_judged_beyond_its_noise(
    per_hour: float, noise: float, verdict: TrendVerdict
) -> None:
    assert judge_growth(grown(per_hour, noise), BAR).verdict is verdict


def test_what_grew_only_while_it_filled_is_not_missed() -> None:
    """A finding: a cache that was full after a quarter of an hour was judged to grow by 30 % an hour."""
    filling = [{**each, "memory": 105 - 5 * math.exp(-each["at_s"] / 300)} for each in HOUR[:120]]
    judged = judge_growth(filling, BAR)
    assert judged.verdict is TrendVerdict.NOISY
    hour = [{**each, "memory": 105 - 5 * math.exp(-each["at_s"] / 300)} for each in HOUR]
    assert judge_growth(hour, BAR).verdict is TrendVerdict.MET


@pytest.mark.parametrize(
    ("leaked_per_hour", "verdict"), [(8.0, TrendVerdict.MISSED), (0.0, TrendVerdict.MET)]
)
def test_a_leak_is_missed_beneath_memory_that_is_given_back_every_minute(
    leaked_per_hour: float, verdict: TrendVerdict
) -> None:
    leaking = [
        {**each, "memory": 100 + leaked_per_hour * each["at_s"] / 3600 + each["at_s"] % 60 / 30}
        for each in HOUR
    ]
    assert judge_growth(leaking, BAR).verdict is verdict


def test_a_leak_in_the_second_half_of_a_short_run_is_missed() -> None:
    assert judge_growth(grown(10.0, 0.3)[:100], BAR).verdict is TrendVerdict.MISSED
    assert judge_growth(grown(10.0, 0.3)[:95], BAR).verdict is TrendVerdict.SHORT


def test_a_short_run_is_not_judged_however_steep_it_is() -> None:
    judged = judge_growth(grown(1_000.0)[:6], BAR)
    assert judged.verdict is TrendVerdict.SHORT
    assert judged.seen == "113.9, +878.0%/h ± 0.0%"


@pytest.mark.parametrize(
    ("is_timing", "verdict"), [(True, TrendVerdict.DISTURBED), (False, TrendVerdict.MISSED)]
)
def test_times_are_not_judged_on_a_disturbed_machine(
    verdict: TrendVerdict, *, is_timing: bool
) -> None:
    bar = BAR._replace(is_timing=is_timing)
    assert judge_growth(grown(5.0), bar, is_disturbed=True).verdict is verdict
    assert judge_growth(grown(5.0), bar, is_disturbed=False).verdict is TrendVerdict.MISSED


def test_a_value_that_was_never_sampled_is_not_judged() -> None:
    assert judge_growth(HOUR, BAR) == ("memory", "≤ 2%/h", "-", TrendVerdict.SHORT, "a reason")
    assert judge_level(HOUR, LevelBar("memory", 3, "a reason")).verdict is TrendVerdict.SHORT
    assert growth_words(HOUR, "memory") == "memory: -"
    assert growth_words([], "memory") == "memory: -"


def test_a_growth_in_its_own_unit_is_no_share_of_the_mean() -> None:
    bar = BAR._replace(most=2.0, is_share=False)
    assert judge_growth(grown(1.5), bar).verdict is TrendVerdict.MET
    judged = judge_growth(grown(2.5), bar)
    assert (judged.bar, judged.seen, judged.verdict) == (
        "≤ 2/h",
        "101.4, +2.50/h ± 0.00",
        TrendVerdict.MISSED,
    )


@pytest.mark.parametrize(
    ("most", "verdict"), [(101, TrendVerdict.MET), (100.5, TrendVerdict.MISSED)]
)
def test_a_level_is_judged_by_its_largest_value_after_the_warm_up(
    most: float, verdict: TrendVerdict
) -> None:
    samples = grown(1.0)
    samples[0]["memory"] = 1_000.0
    assert judge_level(samples, LevelBar("memory", most, "a reason")).verdict is verdict


@pytest.mark.parametrize(
    ("is_timing", "verdict"), [(True, TrendVerdict.DISTURBED), (False, TrendVerdict.MISSED)]
)
def test_no_time_is_missed_where_other_programs_disturbed_the_machine(
    verdict: TrendVerdict, *, is_timing: bool
) -> None:
    bar = LevelBar("memory", 1, "a reason", is_timing)
    assert judge_level(grown(1.0), bar, is_disturbed=True).verdict is verdict
    assert judge_level(grown(1.0), bar).verdict is TrendVerdict.MISSED


def test_every_bar_has_a_line_and_a_reason() -> None:
    judged = judge_all(HOUR)
    assert [each.name for each in judged] == [each.name for each in (*GROWTH_BARS, *LEVEL_BARS)]
    assert all(len(each.why.split()) > 4 for each in judged)


@pytest.mark.parametrize(
    "level", [bar for bar in LEVEL_BARS if bar.name.startswith("lag ")], ids=lambda bar: bar.name
)
def test_a_lag_that_grows_is_missed_long_before_it_is_too_long(level: LevelBar) -> None:
    """Lags were judged by their largest value alone, which a slow growth reaches only after a day."""
    (bar,) = [each for each in GROWTH_BARS if each.name == level.name]
    assert bar.most * 24 <= level.most
    growing = [{**each, level.name: 2 * bar.most * each["at_s"] / 3600} for each in HOUR]
    assert judge_level(growing, level).verdict is TrendVerdict.MET
    assert judge_growth(growing, bar).verdict is TrendVerdict.MISSED
    steady = [{**each, level.name: bar.most} for each in HOUR]
    assert judge_growth(steady, bar).verdict is TrendVerdict.MET

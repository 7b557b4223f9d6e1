"""Trends of sampled values: slopes by least squares, and verdicts against named bars.

A slope is judged only beyond its noise: it is missed if even its lower bound is over the bar, met if even its upper
bound is below. The first samples are not counted, because caches fill then. What grew only at first lies on a bent line,
and so do steps; samples that lie on the same side of the slope as those before widen its noise.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from foretell.bench.rigs.soak.samples import MB, SERVER_LESS_KNOWN, SQLITE
from foretell.store.database import READER_CACHE_KIB, READERS_MAX, WRITER_CACHE_KIB
from foretell.store.public_reads.places import PublicReadLimits

WARM_UP: Final = 0.1
"""The part of a run that is not counted."""
WARM_UP_S: Final = 480.0
"""How much of it is not counted for a growth, at least, and half of a shorter run.

At the default load the stream of a trader has the messages that it keeps, a thousand, after seven minutes.
"""
HOUR_S: Final = 3_600
ERRORS: Final = 3.0
"""Standard errors on either side of a slope."""
JUDGED_S: Final = 2 * WARM_UP_S
"""The shortest run whose slopes are judged: the second half of a shorter one would have caches that fill."""
JUDGED_SAMPLES: Final = 10


Samples = Sequence[Mapping[str, float]]


class TrendVerdict(StrEnum):
    """The judgement of a value against its bar."""

    MET = "met"
    MISSED = "missed"
    NOISY = "not decided: the noise is larger than the bar"
    SHORT = "not judged: the run is too short"
    DISTURBED = "not judged: other programs disturbed it"


class Slope(NamedTuple):
    """The mean of values, their growth in an hour, and the standard error of that growth."""

    mean: float
    per_hour: float
    error_per_hour: float


class GrowthBar(NamedTuple):
    """The most that a value may grow in an hour, as a share of its mean or in its own unit, and the reason."""

    name: str
    most: float
    why: str
    is_share: bool = True
    is_timing: bool = False
    """Whether it is a time, which other programs change."""


class LevelBar(NamedTuple):
    """The most that a value may ever be after the warm-up, and the reason."""

    name: str
    most: float
    why: str
    is_timing: bool = False
    """Whether it is a time, which other programs change."""


class JudgedTrend(NamedTuple):
    """A line of the verdict."""

    name: str
    bar: str
    seen: str
    verdict: TrendVerdict
    why: str


_CACHES_KIB: Final = WRITER_CACHE_KIB + READER_CACHE_KIB * (
    READERS_MAX + PublicReadLimits().connections
)
SQLITE_MB_MAX: Final = round(1.25 * 1024 * _CACHES_KIB / MB)
_HALF_AGAIN: Final = "at this growth a day adds half; what a server keeps has a bound"
_NO_END: Final = "the time of a request must not depend on the history"
_DAY_OF_LAG: Final = "at this growth a lag reaches its largest value in a day, or later"
"""So each of these bars is at most a 24th of the one of the largest lag below."""

GROWTH_BARS: Final = (
    GrowthBar(SERVER_LESS_KNOWN, 0.02, _HALF_AGAIN),
    GrowthBar("memory tables MB", 0.02, _HALF_AGAIN),
    GrowthBar("memory recovery MB", 0.02, _HALF_AGAIN),
    GrowthBar("memory settlement MB", 0.02, _HALF_AGAIN),
    GrowthBar("memory reads MB", 0.02, _HALF_AGAIN),
    GrowthBar("files open", 2.0, "a leak of files ends at the system's limit", is_share=False),
    GrowthBar("orders p50 ms", 0.10, _NO_END, is_timing=True),
    GrowthBar("reads p50 ms", 0.10, _NO_END, is_timing=True),
    GrowthBar("lag tables ms", 200.0, _DAY_OF_LAG, is_share=False, is_timing=True),
    GrowthBar("lag index blocks", 0.5, _DAY_OF_LAG, is_share=False, is_timing=True),
    GrowthBar("lag settlement s", 1.0, _DAY_OF_LAG, is_share=False, is_timing=True),
)
LEVEL_BARS: Final = (
    LevelBar(
        SQLITE, SQLITE_MB_MAX, "the caches of all connections, full, and a quarter for the rest"
    ),
    LevelBar(
        "lag tables ms", 5_000, "account routes wait so long, then they are refused", is_timing=True
    ),
    LevelBar(
        "lag index blocks", 15, "a balance of the chain counts after a few blocks", is_timing=True
    ),
    LevelBar(
        "lag settlement s",
        30,
        "a trade is mined within a few blocks of a second each",
        is_timing=True,
    ),
)
SLOPES_SHOWN: Final = (
    "memory server MB",
    "memory SQLite of server MB",
    "memory chain MB",
    "files database MB",
    "files journal MB",
    "files chain MB",
)
"""Values that grow with the load by design; their slopes are printed without a bar."""


def slope_of(samples: Samples, name: str) -> Slope | None:
    """Return the slope of a value, by least squares after the warm-up; None for less than three samples."""
    points = [(each["at_s"], each[name]) for each in settled(samples) if name in each]
    if len(points) < 3:  # noqa: PLR2004 - two points have no noise
        return None
    mean_s = math.fsum(at_s for at_s, _ in points) / len(points)
    mean = math.fsum(value for _, value in points) / len(points)
    spread = math.fsum((at_s - mean_s) ** 2 for at_s, _ in points)
    per_s = math.fsum((at_s - mean_s) * (value - mean) for at_s, value in points) / spread
    distances = [value - mean - per_s * (at_s - mean_s) for at_s, value in points]
    rest = math.fsum(each**2 for each in distances)
    error_per_s = math.sqrt(rest / _degrees_of_freedom(distances) / spread)
    return Slope(mean, per_s * HOUR_S, error_per_s * HOUR_S)


def _degrees_of_freedom(distances: Sequence[float]) -> float:
    """Return how many samples count for the noise: less of those that repeat a part of the one before, and two for the line."""
    rest = math.fsum(each**2 for each in distances)
    repeated = math.fsum(one * other for one, other in pairwise(distances)) / rest if rest else 0.0
    repeated = max(repeated, 0.0)
    return max(len(distances) * (1 - repeated) / (1 + repeated) - 2, 1.0)


def settled(samples: Samples) -> Samples:
    """Return the samples that count for a growth."""
    end_s = samples[-1]["at_s"] if samples else 0.0
    after_s = max(WARM_UP * end_s, min(WARM_UP_S, end_s / 2))
    return [each for each in samples if each["at_s"] > after_s]


def counted(samples: Samples) -> Samples:
    """Return the samples that count for a level."""
    after_s = WARM_UP * samples[-1]["at_s"] if samples else 0.0
    return [each for each in samples if each["at_s"] > after_s]


def judge_growth(samples: Samples, bar: GrowthBar, *, is_disturbed: bool = False) -> JudgedTrend:
    """Return the verdict on a growth; other programs disturbed the machine or not."""
    slope = slope_of(samples, bar.name)
    words = f"≤ {bar.most:.0%}/h" if bar.is_share else f"≤ {bar.most:g}/h"
    if slope is None:
        return JudgedTrend(bar.name, words, "-", TrendVerdict.SHORT, bar.why)
    unit = slope.mean if bar.is_share and slope.mean else 1.0
    growth, noise = slope.per_hour / unit, ERRORS * slope.error_per_hour / unit
    seen = f"{growth:+.1%}/h ± {noise:.1%}" if bar.is_share else f"{growth:+.2f}/h ± {noise:.2f}"
    if is_disturbed and bar.is_timing:
        verdict = TrendVerdict.DISTURBED
    elif _is_short(settled(samples)):
        verdict = TrendVerdict.SHORT
    else:
        verdict = _verdict(growth - noise, growth + noise, bar.most)
    return JudgedTrend(bar.name, words, f"{slope.mean:,.1f}, {seen}", verdict, bar.why)


def _is_short(used: Samples) -> bool:
    return len(used) < JUDGED_SAMPLES or used[-1]["at_s"] < JUDGED_S


def _verdict(least: float, most: float, bar: float) -> TrendVerdict:
    """Return the verdict on a growth between two bounds."""
    if least > bar:
        return TrendVerdict.MISSED
    return TrendVerdict.MET if most <= bar else TrendVerdict.NOISY


def judge_level(samples: Samples, bar: LevelBar, *, is_disturbed: bool = False) -> JudgedTrend:
    """Return the verdict on the largest value; no time is missed where other programs disturbed the machine."""
    values = [each[bar.name] for each in counted(samples) if bar.name in each]
    if not values:
        return JudgedTrend(bar.name, f"≤ {bar.most:,g}", "-", TrendVerdict.SHORT, bar.why)
    most = max(values)
    verdict = TrendVerdict.MET
    if most > bar.most:
        is_excused = is_disturbed and bar.is_timing
        verdict = TrendVerdict.DISTURBED if is_excused else TrendVerdict.MISSED
    return JudgedTrend(bar.name, f"≤ {bar.most:,g}", f"{most:,.1f} at most", verdict, bar.why)


def judge_all(samples: Samples, *, is_disturbed: bool = False) -> list[JudgedTrend]:
    """Return the verdict on every bar."""
    growth = [judge_growth(samples, bar, is_disturbed=is_disturbed) for bar in GROWTH_BARS]
    return growth + [judge_level(samples, bar, is_disturbed=is_disturbed) for bar in LEVEL_BARS]


def growth_words(samples: Samples, name: str) -> str:
    """Return the growth of a value without a bar, in words."""
    slope = slope_of(samples, name)
    if slope is None:
        return f"{name}: -"
    return f"{name}: {slope.mean:,.1f}, {slope.per_hour:+,.1f} an hour"

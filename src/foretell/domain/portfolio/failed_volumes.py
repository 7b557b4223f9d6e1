"""Periods of what has failed to settle: it is kept by the minute and by the day in which it was matched.

So a trade that fails changes two sums, however long ago it was matched; and what failed since any minute is the sum of
the minutes until the next day begins and of the days after that.
"""

from typing import Final, NamedTuple

DAY_MINUTES: Final = 24 * 60
PERIOD_MINUTES: Final = (1, DAY_MINUTES)
"""The lengths of the periods."""


class SumPeriod(NamedTuple):
    """A minute or a day, which begins at a minute counted from 1970."""

    length_minutes: int
    first_minute: int


class PeriodsSince(NamedTuple):
    """The minutes from one until a day begins, which is after the last of them, and all days from that on."""

    first_minute: int
    first_day: int


def periods_of(minute: int) -> tuple[SumPeriod, ...]:
    """Return the periods in whose sums a trade counts that was matched in this minute."""
    return tuple(SumPeriod(length, minute - minute % length) for length in PERIOD_MINUTES)


def periods_since(minute: int) -> PeriodsSince:
    """Return the periods that together are the time since a minute: less than a day of minutes, and whole days."""
    return PeriodsSince(minute, minute + -minute % DAY_MINUTES)

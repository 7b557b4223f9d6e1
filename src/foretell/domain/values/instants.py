"""Instants: milliseconds since 1970 and ISO 8601 in UTC."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

TIMES_KEPT_MAX: Final = 8_192
"""Times whose text is kept: those of the same markets are in many answers."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=TIMES_KEPT_MAX)
def iso_time(at_ms: int) -> str:
    """Return a time as ISO 8601 in UTC, with milliseconds unless they are zero."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    precision = "milliseconds" if at_ms % 1000 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def unix_ms(moment: datetime) -> int:
    """Return the milliseconds since 1970 at a moment with a time zone; parts of one are cut off."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)

"""The periods of leaderboards."""

import enum
from typing import Final

from foretell.domain.portfolio.price_history import DAY_S


class Period(enum.IntEnum):
    """A period, by its number of days; ALL begins with the first block."""

    ALL = 0
    DAY = 1
    WEEK = 7
    MONTH = 30

    @property
    def seconds(self) -> int:
        """The length of a period that has one."""
        return self.value * DAY_S


WINDOWS: Final = (Period.DAY, Period.WEEK, Period.MONTH)
"""The periods that begin later every second."""

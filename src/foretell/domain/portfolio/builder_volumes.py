"""The volumes of builders, and the wallets whose orders they bring, by the day of the match in UTC.

An order of a builder counts with its own collateral, as taker or as maker. A trade whose two orders name the same builder
counts for both. What has failed for good to settle does not count. All figures are sums over fills, so a trade that is
split into parts changes none of them.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.price_history import DAY_S
from foretell.domain.values.hexadecimal import Address, Bytes32

DAY_MS: Final = 1000 * DAY_S
FIRST_DAY: Final = 0


class UserDay(NamedTuple):
    """A builder, a wallet with an order of it, and a day counted from 1970."""

    builder: Bytes32
    wallet: Address
    day: int


class BuilderUser(NamedTuple):
    """A builder, and a wallet with an order of it."""

    builder: Bytes32
    wallet: Address


class BuilderDay(NamedTuple):
    """A builder and a day."""

    builder: Bytes32
    day: int


class TradedFills(NamedTuple):
    """Collateral, and the number of fills in which orders paid or received it."""

    volume_units: int
    fills: int

    def plus(self, other: "TradedFills") -> "TradedFills":
        """Return the sum of both."""
        return TradedFills(self.volume_units + other.volume_units, self.fills + other.fills)


class BuilderSums(NamedTuple):
    """What was traded, by how many wallets, and how many of these have no later day; the last is of days alone."""

    volume_units: int
    fills: int
    users: int = 0
    last_users: int = 0

    def plus(self, other: "BuilderSums") -> "BuilderSums":
        """Return the sum of both."""
        return BuilderSums(*map(sum, zip(self, other, strict=True)))


NOTHING: Final = TradedFills(0, 0)
NO_SUMS: Final = BuilderSums(0, 0)


class SumChanges(NamedTuple):
    """What is added to the sums of days, and to those of all days; what is negative is taken off."""

    by_day: Mapping[BuilderDay, BuilderSums]
    by_builder: Mapping[Bytes32, BuilderSums]


def day_of(at_ms: int) -> int:
    """Return the day of a time in UTC, counted from 1970."""
    return at_ms // DAY_MS


def first_day(period: Period, now_ms: int) -> int:
    """Return the first day of a period, which ends with the present day."""
    return FIRST_DAY if period is Period.ALL else day_of(now_ms) - int(period) + 1


def sum_changes(
    changes: Mapping[UserDay, TradedFills],
    fills_before: Mapping[UserDay, int],
    last_before: Mapping[BuilderUser, int],
    last_after: Mapping[BuilderUser, int],
) -> SumChanges:
    """Return what changes of days of wallets are to the sums.

    `fills_before` has the days that had fills before the changes. The last day of each wallet is given before and after
    them; a wallet without a day has none. Of a day that has less than is taken off nothing is left.
    """
    by_day: defaultdict[BuilderDay, BuilderSums] = defaultdict(lambda: NO_SUMS)
    by_builder: defaultdict[Bytes32, BuilderSums] = defaultdict(lambda: NO_SUMS)

    for key, traded in changes.items():
        before = fills_before.get(key, 0)
        after = max(before + traded.fills, 0)
        day, users = BuilderDay(key.builder, key.day), bool(after) - bool(before)
        by_day[day] = by_day[day].plus(BuilderSums(*traded, users))
        by_builder[key.builder] = by_builder[key.builder].plus(BuilderSums(*traded))
    for last_days, sign in ((last_before, -1), (last_after, 1)):
        for user, last in last_days.items():
            day = BuilderDay(user.builder, last)
            by_day[day] = by_day[day].plus(BuilderSums(0, 0, last_users=sign))
            by_builder[user.builder] = by_builder[user.builder].plus(BuilderSums(0, 0, sign))
    return SumChanges(by_day, by_builder)

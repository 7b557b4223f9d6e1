"""Budgets of 24 hours: of accounts that submit for other owners, and of all owners together.

Use is added up by the hour, so that a check reads 25 sums, however many transactions they have. An hour counts
until all of it is 24 hours ago: a transaction counts for at least 24 hours, and for less than 25.

Accounts cost nothing, so many of them could use up the gas of all owners. The second half of it is kept for owners
whose wallets have held something for as long: else one amount, passed on, would serve many of them. Each has a small
part of what is left, at least one transaction: the more it has used, the sooner it waits.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.errors.relayer import (
    BuilderGasReached,
    BuilderLimitReached,
    RelayerGasReached,
    RelayerGasReserved,
)

HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
HOURS_COUNTED: Final = 25
"""The present hour and the 24 before it."""
OWNERS_SERVED: Final = 64
"""What is left of the second half is enough for so many owners as large as the one that asks."""


class HourlyUse(NamedTuple):
    """What was submitted in an hour, which is counted from 1970."""

    hour: int
    relays: int
    gas: int


class OwnerUse(NamedTuple):
    """The gas of an owner's own transactions in 24 hours, and whether its wallets have held something for as long."""

    gas: int
    is_known: bool


class BuilderBudget(NamedTuple):
    """The most that an account may submit for other owners in 24 hours; 0: any amount."""

    relays_max: int
    gas_max: int


def hour_of(at_ms: int) -> int:
    """Return the hour of a time."""
    return at_ms // HOUR_MS


def first_hour(now_ms: int) -> int:
    """Return the oldest hour that counts."""
    return hour_of(now_ms) - HOURS_COUNTED + 1


def check_builder(budget: BuilderBudget, hours: Sequence[HourlyUse], gas: int, now_ms: int) -> None:
    """Refuse a transaction of this much gas for which an account's budget leaves no room."""
    relays_wait_s = _wait_s(
        [(each.hour, each.relays) for each in hours], budget.relays_max - 1, now_ms
    )
    if budget.relays_max and relays_wait_s:
        raise BuilderLimitReached(budget.relays_max, relays_wait_s)
    gas_wait_s = _gas_wait_s(hours, budget.gas_max - gas, now_ms)
    if budget.gas_max and gas_wait_s:
        raise BuilderGasReached(budget.gas_max, sum(each.gas for each in hours), gas, gas_wait_s)


def check_all_owners(gas_max: int, hours: Sequence[HourlyUse], gas: int, now_ms: int) -> None:
    """Refuse a transaction of this much gas for which the budget of all owners leaves no room; 0: any amount."""
    wait_s = _gas_wait_s(hours, gas_max - gas, now_ms)
    if gas_max and wait_s:
        raise RelayerGasReached(gas_max, sum(each.gas for each in hours), gas, wait_s)


def is_reserved(gas_max: int, hours: Sequence[HourlyUse]) -> bool:
    """Return whether more than half of the gas of all owners is used: the rest is for known owners."""
    return bool(gas_max) and 2 * sum(each.gas for each in hours) > gas_max


def check_reserve(
    gas_max: int, hours: Sequence[HourlyUse], owner: OwnerUse, gas: int, now_ms: int
) -> None:
    """Refuse a transaction of this much gas for which an owner's part of the reserved gas leaves no room."""
    if not is_reserved(gas_max, hours):
        return
    left = gas_max - sum(each.gas for each in hours)
    first = 0 if owner.gas else min(gas, left)
    most = max(left // OWNERS_SERVED, first) if owner.is_known else 0
    if owner.gas + gas > most:
        wait_s = _gas_wait_s(hours, gas_max // 2, now_ms)
        raise RelayerGasReserved(most, owner.gas, gas, wait_s, is_known=owner.is_known)


def _gas_wait_s(hours: Sequence[HourlyUse], gas_max: int, now_ms: int) -> int:
    return _wait_s([(each.hour, each.gas) for each in hours], gas_max, now_ms)


def _wait_s(amounts: Sequence[tuple[int, int]], most: int, now_ms: int) -> int:
    """Return the seconds until the amounts of the hours that still count are at most `most`, rounded up.

    What no wait makes fit waits for a day: a larger budget may be set until then.
    """
    total, until_ms = sum(amount for _, amount in amounts), now_ms
    for hour, amount in sorted(amounts):
        if total <= most:
            break
        total -= amount
        until_ms = (hour + HOURS_COUNTED) * HOUR_MS
    return DAY_MS // 1000 if total > most else -(-(until_ms - now_ms) // 1000)

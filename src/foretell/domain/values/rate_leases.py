"""Leases of a rate limit: how several processes share the requests of one window.

Each process admits at most the requests that it has leased, so that no round trip is needed for a request. The
leases of all processes together never exceed the limit. A process leases what it has used, what waits, and some
headroom; where that is more than there is, each gets a fair share. A share that shrinks is given back as the
requests leave the window.

Beside its leases a process admits a 64th of the limit at once, so that clients with few requests never wait for a
lease. So N processes admit at most N/64 of the limit too much, and a client that moves to another process may miss
the headroom of the others: at most (N - 1)/64.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

PART: Final = 64
"""The part of a limit that a process admits beside its leases, and keeps as headroom."""


class Demand(NamedTuple):
    """The requests that a process has leased, and those that it wants."""

    leased: int
    wanted: int


class RateLease(NamedTuple):
    """The requests that a process holds, and those that it may admit in the window."""

    held: int
    admitted: int


NO_LEASE: Final = RateLease(0, 0)


def part_of(requests: int) -> int:
    """Return the requests that a process admits beside its leases."""
    return max(1, requests // PART)


def wanted_of(requests: int, used: int, waiting: int) -> int:
    """Return the requests that a process wants to lease of a limit."""
    part = part_of(requests)
    if 2 * used <= part and not waiting:
        return 0
    return min(requests, used + waiting + part)


def lease_of(requests: int, used: int, mine: Demand, others: Sequence[Demand]) -> RateLease:
    """Return the lease of a process; the others hold theirs until they give them back.

    A process goes on holding what it has used, up to its present lease.
    """
    free = max(0, requests - sum(other.leased for other in others))
    fair = fair_share(requests, mine.wanted, [other.wanted for other in others])
    admitted = min(fair, free)
    return RateLease(max(admitted, min(used, mine.leased)), admitted)


def fair_share(requests: int, wanted: int, others: Sequence[int]) -> int:
    """Return a process's share: nobody gets more than it wants, and who wants more gets equally much."""
    left, ahead = requests, sorted(others)
    for number, other in enumerate(ahead):
        even = left // (len(ahead) - number + 1)
        if wanted <= even or other > even:
            return min(wanted, even)
        left -= other
    return min(wanted, left)

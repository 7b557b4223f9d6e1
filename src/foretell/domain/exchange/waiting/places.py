"""Places of trades that wait to be sent: how many each group of them takes, the favored group first."""

from collections.abc import Sequence
from typing import Final

PLACES_SHARED_MIN: Final = 4
"""The fewest places of which every group has a right to one."""


def free_places(most: int, taken: int) -> int:
    """Return how many places may be taken now: none while there are too few for every group, of many.

    Else one group could take each place as soon as it is free, and keep the others waiting for ever.
    """
    free = max(0, most - taken)
    is_shared = free >= PLACES_SHARED_MIN or most < 2 * PLACES_SHARED_MIN
    return free if is_shared else 0


def places_of(limit: int, waiting: Sequence[int]) -> list[int]:
    """Return how many of the places each group of waiting trades takes, the favored group first.

    Each has a right to half of what those before it leave, rounded up; what one does not need goes to
    the others, in their order.
    """
    rights, left = [], limit
    for _ in waiting[1:]:
        rights.append(left - left // 2)
        left //= 2
    taken = [min(pair) for pair in zip(waiting, [*rights, left], strict=True)]
    for at, wanted in enumerate(waiting):
        taken[at] += min(wanted - taken[at], limit - sum(taken))
    return taken


def few_places_of(limit: int, due_at_ms: Sequence[Sequence[int]]) -> list[int]:
    """Return how many places each group takes where there are fewer than groups could share.

    The favored group has a right to one, and the longest due of the first ones of each have the others.
    """
    taken = [0] * len(due_at_ms)
    taken[0] = min(limit, len(due_at_ms[0]), 1)
    waiting = [
        (due_at, group)
        for group, times in enumerate(due_at_ms)
        for due_at in times[taken[group] : limit]
    ]
    for _, group in sorted(waiting)[: limit - taken[0]]:
        taken[group] += 1
    return taken

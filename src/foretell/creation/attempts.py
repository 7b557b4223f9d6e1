"""The attempts at running requests: which are due, and how many of them one round makes.

Anyone can begin a preparation, and most of those that wait for a whitelist or for collateral wait in vain. They
come last in a round and only some of them, so that they do not delay what goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.creation.request import RequestStatus
from foretell.runtime.backoff import pauses_s
from foretell.store.creation.requests import RunningRequest, StoredWait

PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 30.0
FIRST_PER_ROUND_MAX: Final = 50
"""First attempts at preparations in a round, which many have after a start only."""
WAITING_PER_ROUND_MAX: Final = 25
"""Attempts in a round at preparations whose creators had no whitelist or too little collateral."""
SHORTFALL_KEPT_S: Final = 300.0
"""How long a plan's cost is not computed again while its creator holds the same collateral, too little for it."""


class CollateralShortfall(NamedTuple):
    """The collateral that a plan cost, and what its creator held then, as decimal numbers of tokens."""

    cost: str
    held: str


@dataclass(slots=True)
class _Waiting:
    """The pauses of a request that waits, and what its last attempts showed."""

    pauses: Iterator[float]
    due_at_s: float = 0.0
    is_for_creator: bool = False
    wait: StoredWait | None = None
    shortfall: CollateralShortfall | None = None
    computed_at_s: float = 0.0


class Attempts:
    """The attempts of one process; a start begins with none."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._waiting_by_id: dict[str, _Waiting] = {}

    def due(self, running: Sequence[RunningRequest]) -> list[RunningRequest]:
        """Return the requests to attempt in this round, in their order; forget those that run no more."""
        for request_id in self._waiting_by_id.keys() - {each.request_id for each in running}:
            del self._waiting_by_id[request_id]
        now_s = self._monotonic_s()
        first, going_on = [], []
        waiting: list[tuple[float, RunningRequest]] = []
        for each in running:
            known = self._waiting_by_id.get(each.request_id)
            if each.status is RequestStatus.PREPARE_RUNNING and known is None:
                first.append(each)
            elif known is None or known.due_at_s <= now_s:
                if known is not None and known.is_for_creator:
                    waiting.append((known.due_at_s, each))
                else:
                    going_on.append(each)
        waiting.sort(key=lambda entry: entry[0])
        last = [each for _, each in waiting[:WAITING_PER_ROUND_MAX]]
        return [*going_on, *first[:FIRST_PER_ROUND_MAX], *last]

    def pause(self, request: RunningRequest, *, is_for_creator: bool = False) -> None:
        """Have the next attempt at a request wait, each time longer."""
        waiting = self._waiting(request)
        waiting.is_for_creator = is_for_creator
        waiting.due_at_s = self._monotonic_s() + next(waiting.pauses)

    def end_wait(self, request: RunningRequest) -> None:
        """Forget the pauses of a request that took its step."""
        self._waiting_by_id.pop(request.request_id, None)

    def has_wait(self, request: RunningRequest, wait: StoredWait) -> bool:
        """Return whether this wait was noted last for the request."""
        known = self._waiting_by_id.get(request.request_id)
        return known is not None and known.wait == wait

    def note_wait(self, request: RunningRequest, wait: StoredWait) -> None:
        """Note what was stored as the wait of a request."""
        self._waiting(request).wait = wait

    def shortfall(self, request: RunningRequest) -> CollateralShortfall | None:
        """Return the shortfall that was computed not long ago, None if the plan is to be made again."""
        known = self._waiting_by_id.get(request.request_id)
        if known is None or self._monotonic_s() - known.computed_at_s >= SHORTFALL_KEPT_S:
            return None
        return known.shortfall

    def note_shortfall(self, request: RunningRequest, shortfall: CollateralShortfall) -> None:
        """Note what the creator of a request lacks."""
        if self.shortfall(request) != shortfall:
            waiting = self._waiting(request)
            waiting.shortfall, waiting.computed_at_s = shortfall, self._monotonic_s()

    def _waiting(self, request: RunningRequest) -> _Waiting:
        made = _Waiting(pauses_s(PAUSE_S, PAUSE_S_MAX))
        return self._waiting_by_id.setdefault(request.request_id, made)

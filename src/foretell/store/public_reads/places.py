"""Places for the reads of public routes: so many at once in all, and fewer of one client.

A read waits while its client, or all clients together, have no place left. A free place goes to the clients
in turn, so one with many reads does not delay another's. What waits is bounded in number and in time: where all that may
wait does, the client with most of it loses a read to one with less. Where clients rest (`rests.py`), one that reads much
beside others that read little waits for the end of its rest, too.
"""

import asyncio
import contextlib
import enum
import time
from collections import deque
from collections.abc import Iterator
from contextvars import Context, ContextVar, copy_context
from typing import Final, NamedTuple

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.store.public_reads.rests import ReadRests
from foretell.store.public_reads.waiting_reads import Place, WaitingReads

WAIT_S: Final = 10.0
KEY_WAIT_S: Final = 5.0
UNNAMED: Final = "unnamed"
WAITING_PER_CLIENT_MAX: Final = 500
WAITING_MAX: Final = 2_000
TIMER_S: Final = 0.001
"""The finest time of an event loop's timers."""

client_name: Final[ContextVar[str]] = ContextVar("client_name", default="")
"""The client whose request is answered: every surface sets it before it reads."""


def in_request() -> bool:
    """Return whether the present task answers a request, so that its transactions have deadlines."""
    return bool(client_name.get())


@contextlib.contextmanager
def answering(client: str) -> Iterator[None]:
    """Answer a request of this client during a block; one without a name is a client too, so deadlines hold."""
    before = client_name.set(client or UNNAMED)
    try:
        yield
    finally:
        client_name.reset(before)


def context_of(client: str | None) -> Context:
    """Return a copy of the present context in which a request of this client is answered."""
    context = copy_context()
    context.run(client_name.set, client or UNNAMED)
    return context


class ReadKind(enum.Enum):
    """Kinds of reads with places apart: what an index finds soon, for anyone or of an account's own, keys, and sums.

    A key is read to authenticate a request. A sum is added up for one request, a report for all clients.
    """

    LISTING = enum.auto()
    OWN = enum.auto()
    KEY = enum.auto()
    SUM = enum.auto()
    REPORT = enum.auto()


class WaitBounds(NamedTuple):
    """How long a read waits for a place, and how many reads of one client and of all wait at once."""

    wait_s: float = WAIT_S
    per_client: int = WAITING_PER_CLIENT_MAX
    total: int = WAITING_MAX


class PublicReadLimits(NamedTuple):
    """How many reads of routes run at once, and for how long each.

    What accounts read of their own does not wait for what strangers read, and the keys of callers wait for neither.
    A sum adds up many rows for one request, and a report all rows for all clients. Each kind has places of its own,
    so that none uses those of another. A write of a request has a deadline too.
    """

    places: int = 4
    places_per_client: int = 2
    read_s: float = 5.0
    sums: int = 1
    sum_s: float = 30.0
    reports: int = 1
    own: int = 4
    own_per_client: int = 2
    keys: int = 4
    keys_per_client: int = 2
    key_s: float = 2.0
    write_s: float = 5.0
    bounds: WaitBounds = WaitBounds()
    key_bounds: WaitBounds = WaitBounds(wait_s=KEY_WAIT_S)

    @property
    def connections(self) -> int:
        """How many connections these reads use at most."""
        return self.places + self.own + self.keys + self.sums + self.reports


class ReadPlaces:
    """A number of places, given to clients in turn."""

    def __init__(
        self,
        places: int,
        per_client: int,
        bounds: WaitBounds | None = None,
        rests: ReadRests | None = None,
    ) -> None:
        assert per_client >= 1
        assert places >= 1
        self._free = places
        self._per_client = per_client
        self._bounds = bounds or WaitBounds()
        self._rests = rests
        self._begun_s_by_client: dict[str, deque[float]] = {}
        self._waiting = WaitingReads()
        self._timer: asyncio.TimerHandle | None = None
        """Serves the first of those who rest."""

    @property
    def waiting(self) -> int:
        """How many reads wait."""
        return len(self._waiting)

    def waiting_of(self, client: str) -> int:
        """Return how many reads of a client wait."""
        return self._waiting.count_of(client)

    async def take(self, client: str) -> None:
        """Return once the client has one more place, or refuse; `release` gives it back."""
        if self._rests is not None:
            self._rests.begin(client)
        if self._free and self._may_run(client, self._now_s()):
            self._start(client)
            return
        self._make_room(client)
        place: Place = asyncio.get_running_loop().create_future()
        self._waiting.add(client, place)
        self._serve()
        try:
            async with asyncio.timeout(self._bounds.wait_s):
                is_given = await place
        except TimeoutError:
            self._leave(client, place)
            raise self._refusal(client) from None
        except asyncio.CancelledError:
            self._leave(client, place)
            raise
        if not is_given:
            raise ReadsBusy(self._retry_after_s)

    def release(self, client: str) -> None:
        """Give a place back, to the next client in turn."""
        self._free += 1
        begun_s = self._begun_s_by_client[client]
        held_s = time.monotonic() - begun_s.popleft()
        if not begun_s:
            del self._begun_s_by_client[client]
        if self._rests is not None:
            self._rests.end(client, held_s)
        self._serve()

    def _serve(self) -> None:
        """Give free places to those who wait and may have one, now and when the next of them has rested.

        A client that is passed over either holds a place, and is served when it gives that back, or rests until the timer.
        One look at the clock decides on both: a rest that ended between two looks would end without a timer.
        """
        now_s = self._now_s()
        while self._free and (next_client := self._next(now_s)) is not None:
            place = self._waiting.take_next(next_client)
            if not place.done():
                self._start(next_client)
                place.set_result(True)
        self._set_timer(now_s)

    def _set_timer(self, now_s: float) -> None:
        """Serve again when the first of those who rest has rested; the timer may come too early, and a rest grow meanwhile."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._rests is None or not self._free:
            return
        left_s = min(
            filter(None, (self._rests.left_s(each, now_s) for each in self._waiting)), default=0.0
        )
        if left_s:
            self._timer = asyncio.get_running_loop().call_later(max(left_s, TIMER_S), self._serve)

    def _now_s(self) -> float:
        return 0.0 if self._rests is None else self._rests.now_s()

    def _may_run(self, client: str, now_s: float) -> bool:
        running = len(self._begun_s_by_client.get(client, ()))
        return running < self._per_client and (
            self._rests is None or self._rests.may_begin(client, running=running, now_s=now_s)
        )

    def _start(self, client: str) -> None:
        self._free -= 1
        self._begun_s_by_client.setdefault(client, deque()).append(time.monotonic())

    def _next(self, now_s: float) -> str | None:
        """Return the client that has waited the longest for its turn and may run one more read."""
        return next((each for each in self._waiting if self._may_run(each, now_s)), None)

    def _leave(self, client: str, place: Place) -> None:
        """Stop waiting; a place that was given in the same moment goes to the next."""
        if place.cancelled():
            self._waiting.discard(client, place)
        elif place.result():
            self.release(client)

    def _make_room(self, client: str) -> None:
        """Refuse a read that may not wait; where all wait that may, it is one of the client with most of them."""
        waiting = self.waiting_of(client)
        if waiting >= self._bounds.per_client:
            raise TooManyRequests(self._retry_after_s)
        if self.waiting < self._bounds.total:
            return
        if waiting >= self._waiting.most:
            raise ReadsBusy(self._retry_after_s)
        place = self._waiting.take_newest_of_most()
        if not place.done():
            place.set_result(False)

    def _refusal(self, client: str) -> TooManyRequests | ReadsBusy:
        """Return the refusal of a read that got no place in time: for its client's reads, or for all."""
        kind = ReadsBusy if self._may_run(client, self._now_s()) else TooManyRequests
        return kind(self._retry_after_s)

    @property
    def _retry_after_s(self) -> int:
        return max(1, round(self._bounds.wait_s))

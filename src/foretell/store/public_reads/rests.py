"""Rests of clients that read all the time, while others read little.

A client that holds places for much of the time shares the processor with each read of another, however many places
are free. So it has one place then, and rests after each read for as long as the others need to have most of the time;
what another process can answer for it goes there. Alone, or among clients that read as much, it does not rest: no time
is lost that nobody wants.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple

ALL_CLIENTS: Final = "all clients"
"""The name under which is read what is kept for all: nobody rests beside such reads, and they do not rest."""
CLIENTS_MAX: Final = 1_000
"""Clients whose use is remembered: the last that read."""
LOOKED_AT_MAX: Final = 32
"""Of the last clients that read, so many are compared with one that may have to rest."""


class RestLimits(NamedTuple):
    """When a client rests, and for how long."""

    window_s: float = 1.0
    """Use fades with this time: what was held so long ago counts for a third."""
    much_s: float = 0.25
    """Seconds of places in the window, from which a client reads much."""
    most_used_s: float = 2.0
    """Use counts no further, so that clients which read all the time are alike, however many reads of one wait."""
    others_s: float = 0.2
    """Another client that has read within this time is there."""
    per_read: float = 3.0
    """Rest for each second that a read held its place."""
    most_s: float = 0.25
    """The longest rest."""


REST_LIMITS: Final = RestLimits()


class _Use:
    """The seconds for which a client has held places, faded until a time, and the end of its rest."""

    __slots__ = ("at_s", "rests_until_s", "used_s")

    def __init__(self, at_s: float) -> None:
        self.at_s, self.used_s, self.rests_until_s = at_s, 0.0, 0.0


class ReadRests:
    """The use of places by client, and who rests."""

    def __init__(
        self, limits: RestLimits = REST_LIMITS, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self.now_s = now_s
        self._uses: OrderedDict[str, _Use] = OrderedDict()
        """The client that read last at the end."""

    def __len__(self) -> int:
        return len(self._uses)

    def begin(self, client: str) -> None:
        """Note that a client is there."""
        if client != ALL_CLIENTS:
            self._faded(client)

    def end(self, client: str, held_s: float) -> float:
        """Note that a client has held a place, or had a read elsewhere, for so long, and return for how long it rests."""
        if client == ALL_CLIENTS:
            return 0.0
        use = self._faded(client)
        use.used_s = min(use.used_s + held_s, self._limits.most_used_s)
        if not self._yields(client, use):
            return 0.0
        rest_s = min(self._limits.most_s, self._limits.per_read * held_s)
        use.rests_until_s = max(use.rests_until_s, use.at_s + rest_s)
        return rest_s

    def may_begin(self, client: str, *, running: int, now_s: float) -> bool:
        """Return whether a client may have a place beside those that it has."""
        use = self._uses.get(client)
        if use is None:
            return True
        if use.rests_until_s > now_s:
            return False
        return not running or not self._yields(client, use)

    def left_s(self, client: str, now_s: float) -> float:
        """Return for how long a client still rests from a time."""
        use = self._uses.get(client)
        return 0.0 if use is None else max(use.rests_until_s - now_s, 0.0)

    def yields(self, client: str) -> bool:
        """Return whether a client reads much while another is there that reads less than half as much."""
        use = self._uses.get(client)
        return use is not None and self._yields(client, use)

    def _faded(self, client: str) -> _Use:
        """Return the use of a client as of now, and remember it as the last that read."""
        now_s = self.now_s()
        use = self._uses.setdefault(client, _Use(now_s))
        use.used_s = self._left_of(use, now_s)
        use.at_s = now_s
        self._uses.move_to_end(client)
        if len(self._uses) > CLIENTS_MAX:
            self._uses.popitem(last=False)
        return use

    def _left_of(self, use: _Use, now_s: float) -> float:
        """Return what is left of a use by now: it fades."""
        return use.used_s * math.exp((use.at_s - now_s) / self._limits.window_s)

    def _yields(self, client: str, use: _Use) -> bool:
        now_s = self.now_s()
        used_s, since_s = self._left_of(use, now_s), now_s - self._limits.others_s
        if used_s < self._limits.much_s:
            return False
        return any(
            other != client and each.at_s >= since_s and 2 * each.used_s < used_s
            for other, each in islice(reversed(self._uses.items()), LOOKED_AT_MAX)
        )

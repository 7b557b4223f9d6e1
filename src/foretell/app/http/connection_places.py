"""The places for connections of a process: a number in total, with a part reserved for authenticated ones.

An authenticated connection has carried a request with a verified API key, and counts for its account. It keeps its
place, unless its account or its address has many and no other place is left for an account with fewer. All others are
anonymous: they never take the reserved part, and one of them is closed when an authenticated one needs its place.

Since a key is known only after a connection has its place, a new one that finds the places of anonymous
ones taken is admitted provisionally, for a short time, in which it has to show a key. The places for that
are few, and apart. When they are taken, the client with most of them loses the one that has waited for the
longest time: a client that opens many keeps no other one out.
"""

import enum
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from foretell.app.http.authenticated_places import KEPT, AuthenticatedPlaces, idle_or_oldest
from foretell.app.http.request_pace import COST_S_MAX, LOOP_SHARE, LoopClock, RequestPace
from foretell.app.http.stream_pace import (
    PIECES_PER_TURN,
    PROXIES_PIECES_PER_TURN,
    StreamPace,
    StreamTurns,
)
from foretell.edge.client_addresses import ClientAddresses
from foretell.runtime.allowance import GrowingAllowance
from foretell.runtime.loop_share import FairTurns
from foretell.runtime.lru import LruCache
from foretell.runtime.pauses import Pauses

PER_ADDRESS_MAX: Final = 1_000
PER_ACCOUNT_MAX: Final = 1_000
"""Connections of one account that count as authenticated."""
REQUEST_PAUSE_FACTOR: Final = 1.0
"""The pause after a stranger's request, in lengths of what its first steps took: those of all addresses have about half of the
loop's time."""
CONNECTION_PAUSE_FACTOR: Final = 14.0
"""What the end of a connection adds to the pause after a request, in lengths of what making its objects took. What the system
and the loop take to accept and to close one is several times that, and no clock in a callback measures it."""
READ_PAUSE_FACTOR: Final = 1.0
"""The pause after a part of a body, in lengths of the time that it took: bodies are read in half of the loop's time."""
UNLIMITED: Final = 2**31
_UNBOUNDED: Final = (UNLIMITED, UNLIMITED)
_RESERVED_PART: Final = 4
_PROVISIONAL_PART: Final = 32
_PROVISIONAL_MAX: Final = 256
_OPENED_PART: Final = 5
_REQUESTS_EACH: Final = 5
"""Requests in a burst for each connection of an address; as many as the largest published limit allows."""
_WHOLE: Final = 1.0
"""The part of the loop's time for requests with a key: they begin in turn, and the limits of each API bound them."""
_CLIENTS_MAX: Final = 10_000
"""Clients whose new connections and requests are counted; the one that opened none for longest makes way."""


class PlaceLimits(NamedTuple):
    """Numbers of connections: in total, of one address or account, and the parts of the total."""

    total: int = UNLIMITED
    of_address: int = PER_ADDRESS_MAX
    of_account: int = PER_ACCOUNT_MAX
    kept: int = KEPT
    """Authenticated ones of an account, and of an address, that are closed for nobody."""
    reserved: int = 0
    """Which anonymous connections cannot take, the provisional ones included."""
    provisional: int = 0
    frames_burst: float = 4_000.0
    frames_per_s: float = 1_000.0
    """Frames of all streams of one address that are read in a burst, and in a second after it."""
    stream_bytes_burst: float = 8.0 * 1024 * 1024
    stream_bytes_per_s: float = 1.0 * 1024 * 1024
    """Their bytes; see `stream_pace`."""
    opened_burst: float = PER_ADDRESS_MAX
    opened_per_s: float = PER_ADDRESS_MAX / _OPENED_PART
    """New connections of one address in a burst, and in a second after it."""
    requests_burst: float = PER_ADDRESS_MAX * _REQUESTS_EACH
    requests_per_s: float = PER_ADDRESS_MAX
    """Requests of one address that are read in a burst, and in a second after it; see `request_pace`."""

    @classmethod
    def of(cls, total: int, of_address: int = PER_ADDRESS_MAX) -> "PlaceLimits":
        """Return the limits with a quarter of the total reserved; an address may open all that it may have at once."""
        opened = max(of_address, PER_ADDRESS_MAX)
        return cls(
            total,
            of_address,
            reserved=total // _RESERVED_PART,
            provisional=min(total // _PROVISIONAL_PART, _PROVISIONAL_MAX),
            opened_burst=opened,
            opened_per_s=opened / _OPENED_PART,
            requests_burst=opened * _REQUESTS_EACH,
            requests_per_s=opened,
        )


DEFAULT_LIMITS: Final = PlaceLimits()
_CLOCK: Final = LoopClock()


class Holder(Protocol):
    """A connection, as far as its place is concerned."""

    @property
    def is_idle(self) -> bool:
        """Whether no request has begun that is not answered."""

    def close_now(self) -> None:
        """End at once, whatever the connection does."""

    def keep_open(self) -> None:
        """Go on after the present request: the connection is no longer provisional."""


class Standing(enum.Enum):
    """The part of the places that a connection takes one of."""

    ANONYMOUS = "anonymous"
    PROVISIONAL = "provisional"
    AUTHENTICATED = "authenticated"


class ClientAllowances(NamedTuple):
    """The new connections of a client, and the requests of strangers and of those with a key, on all its connections."""

    opened: GrowingAllowance
    anonymous: RequestPace
    authenticated: RequestPace


class Place:
    """The place of one connection."""

    __slots__ = ("_allowances", "_places", "account", "client", "holder", "is_taken", "standing")

    def __init__(
        self,
        places: "ConnectionPlaces",
        client: str,
        holder: Holder,
        allowances: ClientAllowances | None = None,
    ) -> None:
        self._places = places
        self._allowances = allowances
        self.client = client
        """The address that the connection counts for; empty for a trusted proxy."""
        self.holder = holder
        self.standing = Standing.ANONYMOUS
        self.account = ""
        self.is_taken = True

    @property
    def is_provisional(self) -> bool:
        """Whether the connection has to show a key soon."""
        return self.standing is Standing.PROVISIONAL

    @property
    def has_known_client(self) -> bool:
        """Whether all requests on the connection are of a client that has shown a key."""
        return self.standing is Standing.AUTHENTICATED and bool(self.client)

    def show_key(self, account: str) -> None:
        """Have the connection count as authenticated: a request on it was verified with a key of this account."""
        if self.standing is not Standing.AUTHENTICATED and self.is_taken:
            self._places.admit_authenticated(self, account)

    def begin_stream(self) -> None:
        """Have a proxy's connection show a key again: it belongs to one client from now on."""
        if self.standing is Standing.AUTHENTICATED and not self.client and self.is_taken:
            self._places.admit_anonymous(self)

    def stream_pace(self) -> StreamPace:
        """Return the pace that the streams of its address share."""
        return self._places.stream_pace(self.client)

    def may_begin(self, begin: Callable[[], None]) -> bool:
        """Return whether a request may begin now; if not, call `begin` when its address has a turn.

        Those of a connection that has to show a key soon, and those of a trusted proxy, begin at once.
        """
        if self._allowances is None or self.is_provisional:
            return True
        return self._pace_of(self._allowances).may_begin(begin)

    def try_begin(self) -> bool:
        """Return whether a request begins now, without waiting, and count it; see `may_begin`."""
        if self._allowances is None:
            return True
        if self.is_provisional:
            self.count_request()
            return True
        return self._pace_of(self._allowances).try_begin()

    def count_request(self) -> None:
        """Count a request that begins, unless it is one of a trusted proxy."""
        if self._allowances is not None:
            self._pace_of(self._allowances).count()

    async def have_turn(self, client: str) -> None:
        """Wait for the turn of a request of a client that no rate limit bounds, unless it was read in its turn.

        The client is the one that a trusted proxy names.
        """
        if not self.is_provisional and (not self.client or self.has_known_client):
            await self._places.allowances_of(client).anonymous.turn()

    async def have_turn_again(self, client: str) -> None:
        """Wait for the turn of a request whose large body has arrived: those of many may arrive at the same moment."""
        await self._pace_of(self._allowances or self._places.allowances_of(client)).turn()

    def count_time(self, client: str, seconds: float) -> None:
        """Count what a request of a client took of the event loop's time."""
        self._places.allowances_of(client).anonymous.count_time(seconds)

    def _pace_of(self, allowances: ClientAllowances) -> RequestPace:
        is_known = self.standing is Standing.AUTHENTICATED
        return allowances.authenticated if is_known else allowances.anonymous

    def end(self) -> None:
        """Free the place; this may be repeated."""
        if self.is_taken:
            self._places.free(self)


class ConnectionPlaces:
    """Counts open connections, by their standing, and by the address of their client.

    Connections of trusted proxies, and those without an address, count in total only.
    """

    def __init__(
        self,
        limits: PlaceLimits = DEFAULT_LIMITS,
        addresses: Callable[[], ClientAddresses] = ClientAddresses,
        clock: LoopClock = _CLOCK,
    ) -> None:
        assert limits.provisional <= limits.reserved <= limits.total
        self._limits = limits
        self._addresses = addresses
        self._clock = clock
        self._count_by_client: Counter[str] = Counter()
        self._authenticated: AuthenticatedPlaces[Place] = AuthenticatedPlaces(limits.kept)
        self._anonymous: OrderedDict[Place, None] = OrderedDict()
        self._provisional: OrderedDict[Place, None] = OrderedDict()
        self._provisional_by_client: Counter[str] = Counter()
        pauses = Pauses(clock.now_s)
        self.read_turns = FairTurns(READ_PAUSE_FACTOR, pauses)
        """Of bodies that do not come with their requests, and of what is dropped."""
        self.request_turns = FairTurns(REQUEST_PAUSE_FACTOR, pauses, clock.busy_s, COST_S_MAX)
        """Of strangers' requests, by their pace: one of them begins in a turn of the loop. The pauses grow by connections that end."""
        self._stream_turns = StreamTurns(pauses)
        self._stream_pace_by_client: LruCache[str, StreamPace] = LruCache(_CLIENTS_MAX)
        self._allowances_by_client: LruCache[str, ClientAllowances] = LruCache(_CLIENTS_MAX)

    @property
    def taken(self) -> int:
        """The number of open connections."""
        return len(self._anonymous) + len(self._provisional) + len(self._authenticated)

    @property
    def authenticated(self) -> int:
        """The number of connections that have shown a key."""
        return len(self._authenticated)

    def take(self, peer: str | None, holder: Holder) -> Place | None:
        """Return the place of a new connection, or None when it has none."""
        addresses = self._addresses()
        client = "" if peer is None or addresses.is_proxy(peer) else addresses.client(peer)
        if client and self._count_by_client[client] >= self._limits.of_address:
            return None
        allowances = self.allowances_of(client) if client else None
        if allowances and not allowances.opened.try_take(1, self._clock.now_s()):
            return None
        if not (self._has_room_for_anonymous() or self._limits.provisional):
            return None
        place = Place(self, client, holder, allowances)
        self._count_by_client[client] += 1
        self._add_anonymous(place)
        return place

    def client_of(
        self, place: Place, peer: tuple[str, int] | None, headers: Sequence[tuple[bytes, bytes]]
    ) -> str:
        """Return the address that a request counts for, behind a trusted proxy the one that it forwards."""
        if place.client:
            return place.client
        forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        return self._addresses().client(peer and peer[0], forwarded.decode("latin-1") or None)

    def admit_authenticated(self, place: Place, account: str) -> None:
        """Count a place as authenticated, unless there is no place for it, or the account has too many.

        When there is no other place, an anonymous connection is closed for a provisional one, or one of
        the account or the address that has most.
        """
        if self._authenticated.of_account(account) >= self._limits.of_account:
            return
        if place.is_provisional and not self._has_room():
            dispensable = idle_or_oldest(self._anonymous) or self._authenticated.dispensable(
                account, place.client
            )
            if dispensable is None:
                return
            self._close(dispensable)
        self._remove(place)
        if place.is_provisional:
            place.holder.keep_open()
        place.standing, place.account = Standing.AUTHENTICATED, account
        self._authenticated.add(place)

    def admit_anonymous(self, place: Place) -> None:
        """Count an authenticated place as anonymous, or admit its connection provisionally."""
        self._remove(place)
        self._add_anonymous(place)

    def free(self, place: Place) -> None:
        """Free a place that is taken."""
        self._remove(place)
        place.is_taken = False
        self._count_by_client[place.client] -= 1
        if not self._count_by_client[place.client]:
            del self._count_by_client[place.client]

    def stream_pace(self, client: str) -> StreamPace:
        """Return the pace of a client's streams, which outlasts them; those of proxies only take turns."""
        pace = self._stream_pace_by_client.get(client)
        if pace is None:
            limits, now_s = self._limits, self._clock.now_s
            frames = limits.frames_burst, limits.frames_per_s
            size = limits.stream_bytes_burst, limits.stream_bytes_per_s
            pieces = PIECES_PER_TURN
            if not client:
                frames, size, pieces = _UNBOUNDED, _UNBOUNDED, PROXIES_PIECES_PER_TURN
            allowances = GrowingAllowance(*frames, now_s()), GrowingAllowance(*size, now_s())
            pace = StreamPace(*allowances, now_s, self._stream_turns, pieces)
            self._stream_pace_by_client.put(client, pace)
        return pace

    def allowances_of(self, client: str) -> ClientAllowances:
        """Return the allowances of a client, which outlast its connections."""
        allowances = self._allowances_by_client.get(client)
        if allowances is None:
            limits, clock = self._limits, self._clock
            allowances = ClientAllowances(
                GrowingAllowance(limits.opened_burst, limits.opened_per_s, clock.now_s()),
                RequestPace(
                    limits.requests_burst,
                    limits.requests_per_s,
                    LOOP_SHARE,
                    clock,
                    self.request_turns,
                ),
                RequestPace(UNLIMITED, UNLIMITED, _WHOLE, clock, None),
            )
            self._allowances_by_client.put(client, allowances)
        return allowances

    def _has_room(self) -> bool:
        """Return whether a place is free that is not one of the provisional ones."""
        return (
            len(self._anonymous) + len(self._authenticated)
            < self._limits.total - self._limits.provisional
        )

    def _has_room_for_anonymous(self) -> bool:
        anonymous_max = self._limits.total - self._limits.reserved
        return len(self._anonymous) < anonymous_max and self._has_room()

    def _add_anonymous(self, place: Place) -> None:
        if self._has_room_for_anonymous() or not self._limits.provisional:
            place.standing = Standing.ANONYMOUS
            self._anonymous[place] = None
            return
        place.standing = Standing.PROVISIONAL
        self._provisional[place] = None
        self._provisional_by_client[place.client] += 1
        if len(self._provisional) > self._limits.provisional:
            self._close(self._oldest_of_largest())

    def _remove(self, place: Place) -> None:
        """Take a place out of the part that it belongs to."""
        if place.standing is Standing.AUTHENTICATED:
            self._authenticated.remove(place)
        elif place.is_provisional:
            del self._provisional[place]
            self._provisional_by_client[place.client] -= 1
            if not self._provisional_by_client[place.client]:
                del self._provisional_by_client[place.client]
        else:
            del self._anonymous[place]

    def _oldest_of_largest(self) -> Place:
        """Return the oldest provisional place of the clients with most of them."""
        counts = self._provisional_by_client
        most = max(counts.values())
        return next(place for place in self._provisional if counts[place.client] == most)

    def _close(self, place: Place) -> None:
        self.free(place)
        place.holder.close_now()

"""The places of authenticated connections, and the one that makes way when no other place is left.

A connection counts for the account of the key that it has shown. Accounts cost nothing, so a few clients with keys of
their own can take every place. The account that has most then loses its oldest idle connection to one that has fewer;
if none has many, the address that has most.
"""

from collections import OrderedDict
from typing import Final, Generic, Protocol, TypeVar

KEPT: Final = 100
"""Connections of one account, and of one address, that are closed for nobody."""
_LOOKS_MAX: Final = 64
"""Connections that are looked at for an idle one, at one time."""


class BusyOrIdle(Protocol):
    """A connection, as far as it matters which one is closed."""

    @property
    def is_idle(self) -> bool:
        """Whether no request has begun that is not answered."""


class HeldPlace(Protocol):
    """A place, as far as it matters which one makes way."""

    account: str
    client: str

    @property
    def holder(self) -> BusyOrIdle:
        """The connection."""


PlaceT = TypeVar("PlaceT", bound=HeldPlace)


class AuthenticatedPlaces(Generic[PlaceT]):
    """Counts the connections that have shown a key, by its account and by their address."""

    def __init__(self, kept: int = KEPT) -> None:
        self._by_account = _Groups[PlaceT](kept)
        self._by_client = _Groups[PlaceT](kept)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of_account(self, account: str) -> int:
        """Return the number of places of an account."""
        return self._by_account.count(account)

    def add(self, place: PlaceT) -> None:
        """Count a place, whose account is known."""
        self._count += 1
        self._by_account.add(place.account, place)
        if place.client:  # a proxy has the connections of many clients
            self._by_client.add(place.client, place)

    def remove(self, place: PlaceT) -> None:
        """Count a place no more."""
        self._count -= 1
        self._by_account.remove(place.account, place)
        if place.client:
            self._by_client.remove(place.client, place)

    def dispensable(self, account: str, client: str) -> PlaceT | None:
        """Return the place that makes way for a connection of an account and an address, None if there is none.

        The account comes first: traders may share an address with one that has many connections.
        """
        if self._by_account.has_large:
            return self._by_account.dispensable(account)
        return self._by_client.dispensable(client)


class _Groups(Generic[PlaceT]):
    """Places of each account or of each address, the oldest first.

    Those with more than `kept` are known by name, so that the largest one is found among a few.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._places_by_name: dict[str, OrderedDict[PlaceT, None]] = {}
        self._large: set[str] = set()

    @property
    def has_large(self) -> bool:
        return bool(self._large)

    def count(self, name: str) -> int:
        return len(self._places_by_name.get(name, ()))

    def add(self, name: str, place: PlaceT) -> None:
        places = self._places_by_name.setdefault(name, OrderedDict())
        places[place] = None
        if len(places) > self._kept:
            self._large.add(name)

    def remove(self, name: str, place: PlaceT) -> None:
        places = self._places_by_name[name]
        del places[place]
        if len(places) <= self._kept:
            self._large.discard(name)
        if not places:
            del self._places_by_name[name]

    def dispensable(self, name: str) -> PlaceT | None:
        """Return a place of the largest one, unless it is no larger than the named one."""
        largest = max(self._large, key=self.count, default=None)
        if largest is None or self.count(largest) <= self.count(name):
            return None
        return idle_or_oldest(self._places_by_name[largest])


def idle_or_oldest(places: OrderedDict[PlaceT, None]) -> PlaceT | None:
    """Return the place of an idle connection if one is soon found, else of the oldest."""
    for _ in range(min(_LOOKS_MAX, len(places))):
        place = next(iter(places))
        if place.holder.is_idle:
            return place
        places.move_to_end(place)
    return next(iter(places), None)

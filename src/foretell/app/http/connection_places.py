"""The places for connections of a process: a number in total, and a part of them for one address.

A connection that has its place keeps it, whatever others do: those that come later are refused.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from foretell.edge.client_addresses import ClientAddresses

PER_ADDRESS_MAX: Final = 1_000
UNLIMITED: Final = 2**31


class ConnectionPlaces:
    """Counts open connections, by the address of their client.

    Connections of trusted proxies, and those without an address, count in total only.
    """

    def __init__(
        self,
        places_max: int = UNLIMITED,
        per_address_max: int = PER_ADDRESS_MAX,
        addresses: Callable[[], ClientAddresses] = ClientAddresses,
    ) -> None:
        self._places_max = places_max
        self._per_address_max = per_address_max
        self._addresses = addresses
        self._count_by_client: Counter[str] = Counter()
        self.taken = 0

    def take(self, peer: str | None) -> str | None:
        """Return the client that a new connection counts for, or None when it has no place."""
        addresses = self._addresses()
        client = "" if peer is None or addresses.is_proxy(peer) else addresses.client(peer)
        if self.taken >= self._places_max:
            return None
        if client and self._count_by_client[client] >= self._per_address_max:
            return None
        self.taken += 1
        self._count_by_client[client] += 1
        return client

    def give_back(self, client: str) -> None:
        """Free the place of a connection that has ended."""
        assert self._count_by_client[client] > 0
        self.taken -= 1
        self._count_by_client[client] -= 1
        if not self._count_by_client[client]:
            del self._count_by_client[client]

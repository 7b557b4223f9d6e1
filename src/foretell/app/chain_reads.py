"""The share of the connections to the node that requests have.

A process has one set of connections to its node. Their queue is first in, first out, so reads of requests would delay
those of the indexer, of the lag behind the chain and of the accounts that send transactions. Therefore each read of a
request needs a place, and the places together are fewer than the connections. What anyone may ask for has few of them, and
what the owner of a key or of a wallet asks for has others. Clients are served in turn.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from foretell.chain.connections.node_connections import CONNECTIONS_MAX
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.store.public_reads.places import (
    UNNAMED,
    ReadPlaces,
    WaitBounds,
    client_name,
    in_request,
)

PUBLIC_PLACES: Final = 4
PUBLIC_PLACES_PER_CLIENT: Final = 2
PUBLIC_BOUNDS: Final = WaitBounds(wait_s=4.0, per_client=100, total=500)
OWN_PLACES: Final = 8
OWN_BOUNDS: Final = WaitBounds(wait_s=10.0, per_client=1_000, total=2_000)
"""The deadline is that of the wait for a connection: a node that is too slow is unavailable, and tried again."""

assert PUBLIC_PLACES + OWN_PLACES < CONNECTIONS_MAX, "loops have connections of their own"


class ChainReads:
    """Places for the reads of the chain that requests need, each held for one answer of the node."""

    def __init__(
        self, public_bounds: WaitBounds = PUBLIC_BOUNDS, own_bounds: WaitBounds = OWN_BOUNDS
    ) -> None:
        self._public = ReadPlaces(PUBLIC_PLACES, PUBLIC_PLACES_PER_CLIENT, public_bounds)
        self._own = ReadPlaces(OWN_PLACES, OWN_PLACES, own_bounds)

    @contextlib.asynccontextmanager
    async def public(self, method: str) -> AsyncIterator[None]:
        """Hold a place for a read that anyone may ask for.

        Refuses with TooManyRequests or ReadsBusy when the client, or all of them, have too many reads.
        """
        del method
        async with _held(self._public, client_name.get() or UNNAMED):
            yield

    @contextlib.asynccontextmanager
    async def own(self, method: str) -> AsyncIterator[None]:
        """Hold a place for a read of a request that is signed; what no request asks for needs none.

        Such requests may have had an effect, so that one without a place fails as it does when the node is silent.

        Raises ChainUnavailable when no place is free in time.
        """
        if not in_request():
            yield
            return
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(_held(self._own, client_name.get()))
            except (TooManyRequests, ReadsBusy) as refusal:
                raise ChainUnavailable(method, "too many requests wait for the node") from refusal
            yield


@contextlib.asynccontextmanager
async def _held(places: ReadPlaces, client: str) -> AsyncIterator[None]:
    await places.take(client)
    try:
        yield
    finally:
        places.release(client)

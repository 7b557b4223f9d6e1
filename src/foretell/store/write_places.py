"""Places for the writes of requests, so that writes of loops and of other clients wait for few of one client.

A request takes a place before it asks the pool for a connection. Writes of accounts and writes of requests that no API
key signs have places apart, and the clients of each get them in turn. A write of a loop therefore waits for as many
writes of requests as there are places, however many requests wait.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Final

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy, WritesBusy
from foretell.store.public_reads.places import ReadPlaces, WaitBounds, client_name, in_request

SQLITE_PLACES: Final = 1
POSTGRES_PLACES: Final = 4
"""Of accounts and of all others each; together they leave more than half of the pool to loops."""
PLACES_PER_CLIENT: Final = 1
WRITE_BOUNDS: Final = WaitBounds(wait_s=5.0)

_account: Final[ContextVar[str]] = ContextVar("account", default="")


@contextlib.contextmanager
def writing_for(account: str) -> Iterator[None]:
    """Let the writes of a block take places of an account, which an API key has authenticated."""
    before = _account.set(account)
    try:
        yield
    finally:
        _account.reset(before)


class WritePlaces:
    """Places for the writes of requests on one database."""

    def __init__(self, places: int, bounds: WaitBounds = WRITE_BOUNDS) -> None:
        self._of_accounts = ReadPlaces(places, PLACES_PER_CLIENT, bounds)
        self._of_others = ReadPlaces(places, PLACES_PER_CLIENT, bounds)

    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Hold a place during a block, or refuse; a write of no request needs none."""
        if not in_request():
            yield
            return
        account = _account.get()
        places = self._of_accounts if account else self._of_others
        client = account or client_name.get()
        try:
            await places.take(client)
        except (TooManyRequests, ReadsBusy) as refusal:
            raise WritesBusy from refusal
        try:
            yield
        finally:
            places.release(client)

"""Places for the writes of requests, so that writes of loops and of other clients wait for few of one client.

A request takes a place before it asks the pool for a connection. Writes of accounts and writes of requests that no API
key signs have places apart, and the clients of each get them in turn. A write of a loop therefore waits for as many
writes of requests as there are places, however many requests wait.

A write that is refused a place has changed nothing, but its request may have written before. `watching_writes` shows it.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Final, NamedTuple

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy, WritesBusy
from foretell.store.public_reads.places import ReadPlaces, WaitBounds, client_name, in_request


class WritePlaceCounts(NamedTuple):
    """How many writes of requests run at once: of accounts, of one of them, and of all others, one of each."""

    accounts: int
    per_account: int
    others: int


SQLITE_PLACES: Final = WritePlaceCounts(accounts=1, per_account=1, others=1)
POSTGRES_PLACES: Final = WritePlaceCounts(accounts=6, per_account=3, others=4)
"""Together they leave half of the pool to loops and to reads."""
PLACES_PER_OTHER: Final = 1
WRITE_BOUNDS: Final = WaitBounds(wait_s=5.0)

_account: Final[ContextVar[str]] = ContextVar("account", default="")
_is_placeless: Final[ContextVar[bool]] = ContextVar("is_placeless", default=False)


class WatchedWrites:
    """Whether a write of a block has begun."""

    __slots__ = ("has_begun",)

    def __init__(self) -> None:
        self.has_begun = False


_watched: Final[ContextVar[WatchedWrites | None]] = ContextVar("watched", default=None)


@contextlib.contextmanager
def writing_for(account: str) -> Iterator[None]:
    """Let the writes of a block take places of an account, which an API key has authenticated."""
    before = _account.set(account)
    try:
        yield
    finally:
        _account.reset(before)


@contextlib.contextmanager
def writing_apart() -> Iterator[None]:
    """Let the writes of a block wait for no others of their account: they have turns of their own."""
    account = _account.get()
    with writing_for(f"{account} apart" if account else ""):
        yield


@contextlib.contextmanager
def writing_without_place() -> Iterator[None]:
    """Let the writes of a block take no places; who uses it bounds how many there are."""
    before = _is_placeless.set(True)
    try:
        yield
    finally:
        _is_placeless.reset(before)


@contextlib.contextmanager
def watching_writes() -> Iterator[WatchedWrites]:
    """Watch whether a write of a block begins, also in a task that it starts; a block around it does not see these."""
    watched = WatchedWrites()
    before = _watched.set(watched)
    try:
        yield watched
    finally:
        _watched.reset(before)


def _note_begun() -> None:
    watched = _watched.get()
    if watched is not None:
        watched.has_begun = True


class WritePlaces:
    """Places for the writes of requests on one database."""

    def __init__(self, counts: WritePlaceCounts, bounds: WaitBounds = WRITE_BOUNDS) -> None:
        self._of_accounts = ReadPlaces(counts.accounts, counts.per_account, bounds)
        self._of_others = ReadPlaces(counts.others, PLACES_PER_OTHER, bounds)

    @contextlib.asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Hold a place during a block, or refuse; a write of no request needs none."""
        if not in_request() or _is_placeless.get():
            _note_begun()
            yield
            return
        account = _account.get()
        places = self._of_accounts if account else self._of_others
        client = account or client_name.get()
        try:
            await places.take(client)
        except (TooManyRequests, ReadsBusy) as refusal:
            raise WritesBusy from refusal
        _note_begun()
        try:
            yield
        finally:
            places.release(client)

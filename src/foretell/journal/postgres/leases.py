"""The lease of a shard: its holder may write the journal, until a time and in an epoch.

The lease is a row next to the journal. It ends by the database's clock, and is renewed by a thread
of its own on a connection of its own, so that nothing else in the process delays a renewal. The
holder counts from when it sent the renewal, less a margin: it stops before the row's time is over.

Every append names an epoch and is refused when the row has another one: the epoch is the fence. A
process that takes the lease begins a new epoch, and so does the holder with each new connection
that it writes on: a statement sent on an earlier one, which may still arrive, is refused from then
on.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import asyncpg
import structlog

from foretell.domain.errors.storage import JournalFailed, LeaseHeld, LeaseLost
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.connections import (
    LOST,
    cause_of,
    connect,
    connected,
    is_passing,
    retry_pauses_s,
    terminate,
)
from foretell.journal.postgres.schema import prepare_schema
from foretell.runtime.event_loop_thread import LoopThread

LEASE_S: Final = 3.0
"""The database may be silent for half of it; a new leader takes little longer than it."""
RENEWALS_PER_LEASE: Final = 3
CHECKS_PER_LEASE: Final = 10
MARGIN: Final = 0.1
"""The part of a lease that its holder does not use, since clocks run at different rates."""

_LOOK: Final = """
SELECT endpoint, extract(epoch FROM until - clock_timestamp())::float8 AS left_s
FROM journal.lease WHERE shard = $1 AND holder <> $2
"""
_FIND: Final = """
SELECT endpoint FROM journal.lease WHERE shard = $1 AND until > clock_timestamp()
"""
_TAKE: Final = """
INSERT INTO journal.lease AS lease (shard, holder, epoch, until, endpoint)
VALUES ($1, $2, 1, clock_timestamp() + make_interval(secs => $3), $4)
ON CONFLICT (shard) DO UPDATE SET
    holder = excluded.holder,
    epoch = lease.epoch + 1,
    until = clock_timestamp() + make_interval(secs => $3),
    endpoint = excluded.endpoint
WHERE lease.until <= clock_timestamp() OR lease.holder = excluded.holder
RETURNING epoch
"""
_RENEW: Final = """
UPDATE journal.lease
SET until = clock_timestamp() + make_interval(secs => $3), synced = greatest(synced, $4)
WHERE shard = $1 AND holder = $2 AND until > clock_timestamp()
RETURNING epoch
"""
_NEXT_EPOCH: Final = """
UPDATE journal.lease SET epoch = epoch + 1
WHERE shard = $1 AND holder = $2 AND until > clock_timestamp()
RETURNING epoch
"""
_RELEASE: Final = """
UPDATE journal.lease SET until = clock_timestamp(), synced = greatest(synced, $3)
WHERE shard = $1 AND holder = $2 AND until > clock_timestamp()
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """The place of a shard's journal: its database, its number, and the number of shards."""

    url: str = field(repr=False)  # it may hold a password
    shard: ShardNumber
    shard_count: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A process that wants a lease: an id that no other one has or had, and its endpoint."""

    holder: bytes
    endpoint: str
    lease_s: float = LEASE_S


async def find_endpoint(place: JournalPlace) -> str | None:
    """Return the endpoint of the holder of a shard's lease, or None when there is none."""
    try:
        async with connected(place.url) as connection:
            await prepare_schema(connection, place.shard_count)
            endpoint: str | None = await connection.fetchval(_FIND, place.shard)
    except LOST as error:
        raise JournalFailed(cause_of(error)) from error
    return endpoint


class Lease:
    """A lease, from its request until it is lost or released."""

    def __init__(self, place: JournalPlace, candidate: Candidate) -> None:
        self.place = place
        self.synced = 0
        self._candidate = candidate
        self._thread = LoopThread("journal lease")
        self._keeping: Future[None] | None = None
        self._connection: asyncpg.Connection | None = None
        self._ends_at = 0.0
        self._loss: LeaseLost | None = None
        self._on_lost: Callable[[], None] = lambda: None

    @property
    def lease_s(self) -> float:
        """How long the lease lasts without a renewal."""
        return self._candidate.lease_s

    @property
    def holder(self) -> bytes:
        """The id of the lease's holder."""
        return self._candidate.holder

    def acquire(self, patience_s: float) -> None:
        """Wait until the lease is taken, and renew it from then on; or refuse."""
        self._thread.run(self._acquire(patience_s))
        self._keeping = self._thread.submit(self._keep())

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call back, in the lease's thread, when the lease is lost."""
        self._on_lost = callback

    def check(self) -> None:
        """Refuse when the lease is lost, or its time is over."""
        if self._loss is None and time.monotonic() >= self._ends_at:
            self._loss = self._lost("it was not renewed in time")
        if self._loss is not None:
            raise self._loss

    async def next_epoch(self, connection: asyncpg.Connection) -> int:
        """Begin a new epoch for this connection; statements on earlier ones are refused from now on."""
        epoch: int | None = await connection.fetchval(_NEXT_EPOCH, self.place.shard, self.holder)
        if epoch is None:
            raise self._lost("the database says that it ended")
        return epoch

    def close(self) -> None:
        """Release the lease, so that another process may take it at once."""
        if self._thread.is_running:
            with contextlib.suppress(*LOST):
                self._thread.run(self._release())
        self._thread.close()

    def _lost(self, cause: str) -> LeaseLost:
        return LeaseLost(self.place.shard, cause)

    async def _acquire(self, patience_s: float) -> None:
        give_up_at = time.monotonic() + patience_s
        pauses = retry_pauses_s()
        while True:
            try:
                left_s, endpoint = await self._try_to_take()
            except LOST as error:
                self._drop_connection()
                left_s, endpoint = next(pauses), ""
                if not is_passing(error) or time.monotonic() + left_s >= give_up_at:
                    raise JournalFailed(cause_of(error)) from error
            if self._ends_at:
                return
            left_s = min(max(left_s, 0.0), self.lease_s / CHECKS_PER_LEASE)
            if time.monotonic() + left_s >= give_up_at:
                raise LeaseHeld(self.place.shard, endpoint)
            await asyncio.sleep(left_s)

    async def _try_to_take(self) -> tuple[float, str]:
        """Take the lease if it is over; else return how long it still lasts, and its endpoint.

        The row is read before it is written, so that waiting processes never lock it.
        """
        connection = await self._connected()
        held = await connection.fetchrow(_LOOK, self.place.shard, self.holder)
        if held is not None and held["left_s"] > 0:
            return held["left_s"], held["endpoint"]
        epoch = await connection.fetchval(
            _TAKE, self.place.shard, self.holder, self.lease_s, self._candidate.endpoint
        )
        # Taking may have waited for a batch of the previous holder; renewing waits for nothing.
        if epoch is None or not await self._is_renewed():
            return 0.0, "another, since a moment ago"
        log.info("lease taken", shard=self.place.shard, epoch=epoch)
        return 0.0, self._candidate.endpoint

    async def _keep(self) -> None:
        """Renew the lease until that fails."""
        try:
            while True:
                await asyncio.sleep(self.lease_s / RENEWALS_PER_LEASE)
                self.check()
                await self._renew()
        except Exception as error:  # noqa: BLE001 - any error ends the renewals and the lease
            self._loss = error if isinstance(error, LeaseLost) else self._lost(cause_of(error))
            log.error("lease lost", shard=self.place.shard, cause=str(self._loss))  # noqa: TRY400 - the cause is in it
            self._on_lost()

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout_at(self._ends_at):
                for pause_s in retry_pauses_s():
                    if await self._is_renewed():
                        return
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            raise self._lost("the database did not answer in time") from None

    async def _is_renewed(self) -> bool:
        """Renew the lease; return False if the outcome is unknown, raise if the lease is lost."""
        try:
            connection = await self._connected()
            asked_at = time.monotonic()
            epoch = await connection.fetchval(
                _RENEW,
                self.place.shard,
                self.holder,
                self.lease_s,
                self.synced,
                timeout=self.lease_s / RENEWALS_PER_LEASE,
            )
        except LOST as error:
            self._drop_connection()
            log.warning("lease not renewed", shard=self.place.shard, cause=cause_of(error))
            if not is_passing(error):
                raise self._lost(cause_of(error)) from error
            return False
        if epoch is None:
            raise self._lost("the database says that it ended")
        self._ends_at = asked_at + self.lease_s * (1 - MARGIN)
        return True

    async def _release(self) -> None:
        """Release the lease on a new connection: a renewal may be under way on the present one."""
        if self._keeping is not None:
            self._keeping.cancel()
        self._drop_connection()
        if self._ends_at:
            async with asyncio.timeout(self.lease_s), connected(self.place.url) as connection:
                await connection.execute(_RELEASE, self.place.shard, self.holder, self.synced)

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None:
            connection = await connect(self.place.url)
            try:
                await prepare_schema(connection, self.place.shard_count)
            except BaseException:
                connection.terminate()
                raise
            self._connection = connection
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        terminate(connection)

"""The journal of one shard in PostgreSQL, for more than one machine.

Of several processes the one with the lease writes it, and the others wait for the lease. A thread
with its own connection writes everything that was appended during the last commit, in one statement
that fails when the lease is another's: the group commit, and the fence.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

import asyncpg
import structlog

from foretell.domain.errors.storage import JournalFailed, LeaseHeld, LeaseLost
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.framing import PAYLOAD_BYTES_MAX, next_chain
from foretell.journal.port import Capacity, Entry, PostgresJournalAddress, Snapshot
from foretell.journal.postgres.connections import (
    LOST,
    cause_of,
    connect,
    disconnect,
    is_passing,
    retry_pauses_s,
    terminate,
    with_connection,
)
from foretell.journal.postgres.leases import Candidate, JournalPlace, Lease
from foretell.journal.postgres.rows import (
    Row,
    Tail,
    are_durable,
    find_tail,
    insert_rows,
    read_entries,
)
from foretell.journal.postgres.schema import load_identity
from foretell.journal.postgres.snapshots import (
    compact,
    keep_snapshot,
    newest_sequence,
    newest_snapshot,
)
from foretell.runtime.event_loop_thread import LoopThread

BATCH_RECORDS_MAX: Final = 2_000
BATCH_BYTES_MAX: Final = 2 * PAYLOAD_BYTES_MAX

T = TypeVar("T")

log = structlog.get_logger(__name__)


def open_journal(
    place: JournalPlace, candidate: Candidate, *, patience_s: float = 0.0
) -> "PostgresJournal":
    """Return a shard's journal once its lease is taken; the calling thread waits.

    Raises LeaseHeld when another's lease outlasts the patience.
    """
    lease = Lease(place, candidate)
    try:
        lease.acquire(patience_s)
        tail, identity = with_connection(
            place.url, lambda connection: _load(connection, place.shard)
        )
    except BaseException:
        lease.close()
        raise
    return PostgresJournal(place, lease, tail, identity)


async def _load(connection: asyncpg.Connection, shard: ShardNumber) -> tuple[Tail, str]:
    return await find_tail(connection, shard), await load_identity(connection, shard)


async def lead(place: JournalPlace, candidate: Candidate) -> "PostgresJournal":
    """Return a shard's journal once its lease is taken, however long that takes."""
    while True:
        opening = asyncio.ensure_future(
            asyncio.to_thread(open_journal, place, candidate, patience_s=candidate.lease_s)
        )
        try:
            return await asyncio.shield(opening)
        except LeaseHeld:
            continue
        except asyncio.CancelledError:
            with contextlib.suppress(LeaseHeld, JournalFailed):
                await (await opening).close()
            raise


class PostgresJournal:
    """A shard's journal while this process holds its lease; see `journal.port.Journal`."""

    def __init__(self, place: JournalPlace, lease: Lease, tail: Tail, identity: str) -> None:
        self.identity = identity
        self._place = place
        self._lease = lease
        self._writer = _Writer(place, lease, tail)
        self._writing: Future[None] | None = None
        self._last_sequence = self._first_end = tail.sequence

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""
        return self._last_sequence

    @property
    def address(self) -> PostgresJournalAddress:
        """Where another process reads it."""
        return PostgresJournalAddress(self._place.url, self._place.shard, self._lease.holder)

    def entries(self, after: int = 0) -> Generator[Entry, None, None]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged.

        A former leader that does not know yet that another server leads has fewer entries than
        there were when the lease was taken: it is refused with JournalFailed.
        """
        end = after
        for entry in read_entries(self._place.url, self._place.shard, after):
            end = entry.sequence
            yield entry
        if end < self._first_end:
            raise JournalFailed(
                f"this server's journal ends at {end}, and must end at {self._first_end} or later"
            )

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""
        assert self._writing is None
        loop = asyncio.get_running_loop()
        self._writing = self._writer.start(
            lambda sequence: _call(loop, on_synced, sequence),
            lambda failure: _call(loop, on_failed, failure),
        )

    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take a payload and return its sequence; it is not durable yet."""
        assert 0 < len(payload) <= PAYLOAD_BYTES_MAX
        self._last_sequence += 1
        # Eight bytes are shorter than any hash, so a sequence never equals the id of an order.
        command_id = command_id or self._last_sequence.to_bytes(8, "big")
        self._writer.take(command_id, payload)
        return self._last_sequence

    @property
    def capacity(self) -> Capacity:
        """How much more can be written: only a failing statement reveals a full database."""
        return Capacity.AMPLE

    def snapshot(self, until: int | None = None) -> Snapshot | None:
        """Return the newest intact snapshot that is not after a sequence, None when there is none."""
        shard = self._place.shard
        return with_connection(
            self._place.url, lambda connection: newest_snapshot(connection, shard, until)
        )

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable, and remove entries that the two newest do not need."""

        async def keep(connection: asyncpg.Connection) -> None:
            await keep_snapshot(connection, self._place.shard, self._lease.holder, snapshot)
            await compact(connection, self._place.shard)

        await asyncio.to_thread(with_connection, self._place.url, keep)

    async def snapshot_sequence(self) -> int:
        """Return the sequence of the newest snapshot, 0 when there is none."""
        shard = self._place.shard
        return await asyncio.to_thread(
            with_connection, self._place.url, lambda connection: newest_sequence(connection, shard)
        )

    def begin_snapshot(self) -> PostgresJournalAddress:
        """Return the address of the rows, with the lease's holder, for a process that keeps a snapshot.

        Parts without a head are no snapshot: the next one of that sequence overwrites them.
        """
        return self.address

    async def compact(self, *, keeps_all: bool = False) -> int:
        """Remove what the two newest snapshots do not need; return how many entries."""
        shard = self._place.shard
        return await asyncio.to_thread(
            with_connection,
            self._place.url,
            lambda connection: compact(connection, shard, keeps_all=keeps_all),
        )

    async def close(self) -> None:
        """Make durable what was appended, and release the lease."""
        if self._writing is not None:
            self._writer.stop()
            await asyncio.wrap_future(self._writing)
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._lease.close)


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[T], None], value: T) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed already: no caller waits
        loop.call_soon_threadsafe(callback, value)


class _Writer:
    """The thread that makes batches durable, and the payloads that wait for it."""

    # Group commit: payloads that come while one batch commits make up the next one. The thread has
    # an event loop of its own, so that a busy engine delays no commit, nor a commit the engine;
    # only `_appended` and the flags next to it cross between the two, under `_lock`.

    def __init__(self, place: JournalPlace, lease: Lease, tail: Tail) -> None:
        self._place = place
        self._lease = lease
        self._tail = tail
        self._thread = LoopThread("journal")
        self._connection: asyncpg.Connection | None = None
        self._epoch = 0
        self._is_in_doubt = False
        self._appended: deque[tuple[bytes, bytes]] = deque()
        self._lock = threading.Lock()
        self._woken = asyncio.Event()
        self._limit: asyncio.Timeout | None = None
        self._is_idle = False
        self._is_stopping = False

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> Future[None]:
        """Begin to write; the future is done when nothing more will be written."""
        self._lease.on_lost(lambda: self._soon(self._interrupt))
        return self._thread.submit(self._run(on_synced, on_failed))

    def take(self, command_id: bytes, payload: bytes) -> None:
        """Take a payload for the next batch."""
        with self._lock:
            self._appended.append((command_id, payload))
            is_idle, self._is_idle = self._is_idle, False
        if is_idle:
            self._wake()

    def stop(self) -> None:
        """Write what was taken, and end."""
        with self._lock:
            self._is_stopping = True
        self._wake()

    def close(self) -> None:
        """End the thread and its connection."""
        self._thread.run(self._disconnect())
        self._thread.close()

    def _wake(self) -> None:
        self._soon(self._woken.set)

    def _interrupt(self) -> None:
        """End the writer's current wait: the lease is lost."""
        self._woken.set()
        if self._limit is not None and not self._limit.expired():
            with contextlib.suppress(RuntimeError):  # that batch has ended
                self._limit.reschedule(self._thread.loop.time())

    def _soon(self, act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._thread.loop.call_soon_threadsafe(act)

    async def _run(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        try:
            while rows := await self._next_rows():
                await self._make_durable(rows)
                self._tail = Tail(rows[-1].sequence, rows[-1].chain)
                self._lease.synced = self._tail.sequence
                on_synced(self._tail.sequence)
        except Exception as error:  # noqa: BLE001 - it is reported, or all would wait
            failure = error if isinstance(error, JournalFailed) else JournalFailed(cause_of(error))
            on_failed(failure)
            await asyncio.to_thread(self._lease.close)

    async def _next_rows(self) -> Sequence[Row]:
        """Wait for payloads, and return them as a chain of rows; none when the writer stops."""
        while True:
            self._lease.check()
            self._woken.clear()
            with self._lock:
                batch = self._take_batch()
                self._is_idle = not batch
                is_over = self._is_stopping and not batch
            if batch or is_over:
                return self._rows(batch)
            await self._woken.wait()

    def _take_batch(self) -> Sequence[tuple[bytes, bytes]]:
        batch: list[tuple[bytes, bytes]] = []
        room = BATCH_BYTES_MAX
        while self._appended and len(batch) < BATCH_RECORDS_MAX and room > 0:
            batch.append(self._appended.popleft())
            room -= len(batch[-1][1])
        return batch

    def _rows(self, batch: Sequence[tuple[bytes, bytes]]) -> Sequence[Row]:
        sequence, chain = self._tail
        rows = []
        for command_id, payload in batch:
            sequence, chain = sequence + 1, next_chain(chain, payload)
            rows.append(Row(sequence, command_id, chain, payload))
        return rows

    async def _make_durable(self, rows: Sequence[Row]) -> None:
        """Return once the rows are durable; give up after the length of a lease."""
        try:
            async with asyncio.timeout(self._lease.lease_s) as self._limit:
                for pause_s in retry_pauses_s():
                    if await self._is_durable(rows):
                        return
                    self._lease.check()
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            self._lease.check()
            raise JournalFailed(f"no commit within {self._lease.lease_s:g} s") from None

    async def _is_durable(self, rows: Sequence[Row]) -> bool:
        """Write rows, or return False when their outcome is unknown.

        A new connection begins a new epoch first. That is refused without the lease, waits for what
        the previous connection still runs, and fences off what may still arrive from it: what is
        looked up after it is final.
        """
        shard, is_there = self._place.shard, False
        try:
            if self._connection is None:
                self._connection = await self._connect()
                is_there = await are_durable(self._connection, shard, rows)
            if not is_there and not await insert_rows(self._connection, shard, self._epoch, rows):
                raise LeaseLost(shard, "a batch was refused")
        except LOST as error:
            self._drop_connection()
            if not is_passing(error):
                raise
            log.warning("batch outcome unknown", shard=shard, cause=cause_of(error))
            return False
        if self._is_in_doubt:
            self._drop_connection()
            return False
        return True

    async def _connect(self) -> asyncpg.Connection:
        connection = await connect(self._place.url)
        try:
            connection.add_log_listener(self._on_warning)
            self._is_in_doubt = False
            self._epoch = await self._lease.next_epoch(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _on_warning(self, _connection: asyncpg.Connection, message: object) -> None:
        """Treat a commit that the server warns of as not durable.

        It warns when an operator cancels the wait for a synchronous standby: the commit succeeds,
        and may be lost with the primary. Beginning the next epoch waits for the standby again; if
        that wait is canceled too, the lookup after it proves nothing.
        """
        log.warning("database warning", shard=self._place.shard, message=str(message))
        self._is_in_doubt = True

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await disconnect(self._connection)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        terminate(connection)

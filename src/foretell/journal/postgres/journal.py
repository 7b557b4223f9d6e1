"""The journal of one shard in PostgreSQL, for more than one machine.

Several processes may want to write it; the one with the lease does, the others wait for theirs.
A thread with its own connection writes whatever was appended while the last commit ran, in one
statement that fails when the lease is another's: that is the group commit, and the fence.
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
from foretell.journal.framing import PAYLOAD_BYTES_MAX, next_chain
from foretell.journal.port import Capacity, Entry, InRows, Snapshot
from foretell.journal.postgres.connections import (
    LOST,
    ask,
    cause_of,
    connect,
    disconnect,
    is_passing,
    retry_delays_s,
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
    """Return a shard's journal once its lease is ours; the calling thread waits.

    Another's lease that outlasts our patience is refused with LeaseHeld.
    """
    lease = Lease(place, candidate)
    try:
        lease.acquire(patience_s)
        tail = ask(place.url, lambda connection: find_tail(connection, place.shard))
    except BaseException:
        lease.close()
        raise
    return PostgresJournal(place, lease, tail)


async def lead(place: JournalPlace, candidate: Candidate) -> "PostgresJournal":
    """Return a shard's journal once its lease is ours, however long that takes."""
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
    """A shard's journal whose lease is ours; see `journal.port.Journal`."""

    def __init__(self, place: JournalPlace, lease: Lease, tail: Tail) -> None:
        self._place = place
        self._lease = lease
        self._writer = _Writer(place, lease, tail)
        self._writing: Future[None] | None = None
        self._last_sequence = self._first_end = tail.sequence

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""
        return self._last_sequence

    def entries(self, after: int = 0) -> Generator[Entry, None, None]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged.

        A server that led before, and does not know yet that another does, has less than was there
        when the lease was taken: it is refused with JournalFailed.
        """
        end = after
        for entry in read_entries(self._place.url, self._place.shard, after):
            end = entry.sequence
            yield entry
        if end < self._first_end:
            raise JournalFailed(f"a server answered that ends at {end}, not at {self._first_end}")

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""
        assert self._writing is None
        loop = asyncio.get_running_loop()
        self._writing = self._writer.start(
            lambda sequence: _tell(loop, on_synced, sequence),
            lambda failure: _tell(loop, on_failed, failure),
        )

    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take a payload and return its sequence; it is not durable yet."""
        assert 0 < len(payload) <= PAYLOAD_BYTES_MAX
        self._last_sequence += 1
        # A sequence is shorter than any hash, so that it is no other command's id.
        command_id = command_id or self._last_sequence.to_bytes(8, "big")
        self._writer.take(command_id, payload)
        return self._last_sequence

    @property
    def room(self) -> Capacity:
        """How much more can be written: a full database shows in its statements alone."""
        return Capacity.AMPLE

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot that is whole, None when there is none."""
        shard = self._place.shard
        return ask(self._place.url, lambda connection: newest_snapshot(connection, shard))

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable, and let go of entries that the two newest do not need."""

        async def keep(connection: asyncpg.Connection) -> None:
            await keep_snapshot(connection, self._place.shard, self._lease.holder, snapshot)
            await compact(connection, self._place.shard)

        await asyncio.to_thread(ask, self._place.url, keep)

    async def snapshot_sequence(self) -> int:
        """Return the sequence of the newest snapshot, 0 when there is none."""
        shard = self._place.shard
        return await asyncio.to_thread(
            ask, self._place.url, lambda connection: newest_sequence(connection, shard)
        )

    def begin_snapshot(self) -> InRows:
        """Return where the rows are, and whose lease lets another process keep a snapshot.

        Parts without a head are no snapshot: the next of that sequence writes over them.
        """
        return InRows(self._place.url, self._place.shard, self._lease.holder)

    async def let_go(self, *, keeps_all: bool = False) -> int:
        """Let go of what the two newest snapshots do not need; return how many entries that was."""
        shard = self._place.shard
        return await asyncio.to_thread(
            ask,
            self._place.url,
            lambda connection: compact(connection, shard, keeps_all=keeps_all),
        )

    async def close(self) -> None:
        """Make durable what was appended, and give the lease back."""
        if self._writing is not None:
            self._writer.stop()
            await asyncio.wrap_future(self._writing)
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._lease.close)


def _tell(loop: asyncio.AbstractEventLoop, subscriber: Callable[[T], None], told: T) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
        loop.call_soon_threadsafe(subscriber, told)


class _Writer:
    """The thread that makes batches durable, and what waits for it."""

    def __init__(self, place: JournalPlace, lease: Lease, tail: Tail) -> None:
        self._place = place
        self._lease = lease
        self._tail = tail
        self._thread = LoopThread("journal")
        self._connection: asyncpg.Connection | None = None
        self._epoch = 0
        self._is_doubtful = False
        self._appended: deque[tuple[bytes, bytes]] = deque()
        self._lock = threading.Lock()
        self._woken = asyncio.Event()
        self._limit: asyncio.Timeout | None = None
        self._is_idle = False
        self._is_stopping = False

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> Future[None]:
        """Begin to write; what comes back is done when nothing more will be written."""
        self._lease.on_lost(lambda: self._soon(self._interrupt))
        return self._thread.submit(self._run(on_synced, on_failed))

    def take(self, command_id: bytes, payload: bytes) -> None:
        """Take a payload for a later batch."""
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
        """End whatever the writer waits for: the lease is lost."""
        self._woken.set()
        if self._limit is not None and not self._limit.expired():
            with contextlib.suppress(RuntimeError):  # that batch is over
                self._limit.reschedule(self._thread.loop.time())

    def _soon(self, act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
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
        except Exception as error:  # noqa: BLE001 - whatever ends the writer is told, or all wait
            failure = error if isinstance(error, JournalFailed) else JournalFailed(cause_of(error))
            on_failed(failure)
            await asyncio.to_thread(self._lease.close)

    async def _next_rows(self) -> Sequence[Row]:
        """Wait for what was appended, and chain it; none means that it is over."""
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
        """Return once the rows are durable; give up when the lease would have ended meanwhile."""
        try:
            async with asyncio.timeout(self._lease.lease_s) as self._limit:
                for delay_s in retry_delays_s():
                    if await self._is_durable(rows):
                        return
                    self._lease.check()
                    await asyncio.sleep(delay_s)
        except TimeoutError:
            self._lease.check()
            raise JournalFailed(f"no commit within {self._lease.lease_s} s") from None

    async def _is_durable(self, rows: Sequence[Row]) -> bool:
        """Write rows, or return that nobody knows what became of them.

        A new connection begins a new epoch. That is refused to whoever has lost the lease, waits
        for what the connection before still does, and makes void what may still arrive from it: so
        what is looked up then stays as it is.
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
            log.warning("journal batch in doubt", shard=shard, cause=cause_of(error))
            return False
        if self._is_doubtful:
            self._drop_connection()
            return False
        return True

    async def _connect(self) -> asyncpg.Connection:
        connection = await connect(self._place.url)
        try:
            connection.add_log_listener(self._doubt)
            self._is_doubtful = False
            self._epoch = await self._lease.next_epoch(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _doubt(self, _connection: asyncpg.Connection, message: object) -> None:
        """Take no commit for durable that the server warns of.

        It does so when somebody cancels the wait for a synchronous standby: the commit succeeds,
        and may be lost with the primary. Beginning the next epoch waits for the standby again; when
        that wait is canceled too, what is looked up then proves nothing.
        """
        log.warning("journal warned", shard=self._place.shard, message=str(message))
        self._is_doubtful = True

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await disconnect(self._connection)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

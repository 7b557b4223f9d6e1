"""Group commit: write the payloads of a turn of the event loop as one frame, and sync them once.

When nothing else waits, that happens in the event loop's own thread: waking another thread and
being woken by it costs about as much as a sync. Otherwise a writer thread does it, which takes
everything that came during its last sync: one sync serves all of it, so throughput grows with the
load.

The loop stops while it syncs. So it does that only if no event waits for it, for few payloads that
the current segment takes, with an idle writer thread and a disk whose last syncs were fast. All
else, such as the next segment, a full disk and the mark, is the writer thread's.
"""

import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final, NamedTuple

from foretell.domain.errors.storage import JournalFailed
from foretell.journal.files.pending_events import pending_events
from foretell.journal.files.preallocation import DiskFull
from foretell.journal.files.tail import SegmentTail

INLINE_RECORDS_MAX: Final = 1_024
INLINE_BYTES_MAX: Final = 512 * 1024
INLINE_SYNC_S_MAX: Final = 0.001
INLINE_AFTER_FAST_SYNCS: Final = 4
MARK_AFTER_S: Final = 0.05
MARK_EVERY_S: Final = 1.0


class InlineLimits(NamedTuple):
    """The limits of what the event loop's thread writes itself.

    A sync that takes longer than `sync_s` moves all writes to the writer thread, until so many
    syncs in a row were faster.
    """

    records: int = INLINE_RECORDS_MAX
    bytes: int = INLINE_BYTES_MAX
    sync_s: float = INLINE_SYNC_S_MAX
    fast_syncs: int = INLINE_AFTER_FAST_SYNCS


INLINE: Final = InlineLimits()


class GroupCommit:
    """Writes batches of payloads to the tail of the newest segment, in order."""

    # The tail belongs to one thread at a time. The loop counts the jobs that it handed to the
    # writer thread and that are not reported as done; while there is one, the loop touches nothing.
    # The queue of jobs has no bound of its own: what waits there is what the engine lets wait.

    def __init__(self, tail: SegmentTail, inline: InlineLimits, full_retry_s: float) -> None:
        self._tail = tail
        self._inline = inline
        self.full_retry_s = full_retry_s
        self.is_stuck = False
        self._jobs: SimpleQueue[Sequence[bytes] | None] = SimpleQueue()
        self._jobs_handed = 0
        self._fast_syncs = inline.fast_syncs
        self._is_failed = False
        self._closing = threading.Event()
        self._mark_timer: asyncio.TimerHandle | None = None
        self._is_marking = False
        self._synced_at_s = self._marked_at_s = 0.0

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._on_synced, self._on_failed = on_synced, on_failed
        self._has_pending_events = pending_events(self._loop)
        self._marked_at_s = self._loop.time()
        self._mark_soon()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def write(self, payloads: Sequence[bytes]) -> None:
        """Make a batch durable: now, or as soon as the writer thread can. Only the loop calls this."""
        if self._is_failed:
            return
        if self._jobs_handed or not self._may_write_inline(payloads):
            self._hand_over(payloads)
            return
        try:
            self._tail.write(payloads)
        except DiskFull:
            self._hand_over(payloads)
        except Exception as error:  # noqa: BLE001 - it is reported, or all would wait
            self._fail(error)
        else:
            self._note_sync(self._tail.end.sequence, self._tail.sync_s)

    async def close(self) -> None:
        """Return when everything is durable that was handed over, and the mark covers it."""
        if self._mark_timer is not None:
            self._mark_timer.cancel()
        self._closing.set()
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _may_write_inline(self, payloads: Sequence[bytes]) -> bool:
        inline = self._inline
        return (
            len(payloads) <= inline.records
            and self._fast_syncs >= inline.fast_syncs
            and not self._has_pending_events()
            and self._tail.has_room(payloads, inline.bytes)
        )

    def _hand_over(self, payloads: Sequence[bytes]) -> None:
        """Give the writer thread a job: payloads to write, or none to have it write the mark."""
        self._jobs_handed += 1
        self._jobs.put(payloads)

    def _note_sync(self, sequence: int, sync_s: float, jobs_done: int = 0) -> None:
        """Report a sync, and remember how fast it was."""
        self._jobs_handed -= jobs_done
        self._fast_syncs = self._fast_syncs + 1 if sync_s <= self._inline.sync_s else 0
        self._synced_at_s = self._loop.time()
        self._mark_soon()
        self._on_synced(sequence)

    def _fail(self, error: Exception) -> None:
        """Report once that nothing more is written."""
        if not self._is_failed:
            self._is_failed = True
            cause = error.strerror if isinstance(error, OSError) else str(error)
            self._on_failed(JournalFailed(f"{type(error).__name__}: {cause}"))

    def _mark_soon(self) -> None:
        if self._mark_timer is None and not (self._is_marking or self._tail.is_marked):
            self._mark_timer = self._loop.call_later(MARK_AFTER_S, self._mark_if_due)

    def _mark_if_due(self) -> None:
        """Have the mark written after a burst of syncs, and regularly in a long one."""
        self._mark_timer = None
        now_s = self._loop.time()
        is_quiet = not self._jobs_handed and now_s - self._synced_at_s >= MARK_AFTER_S
        if self._is_failed or self._closing.is_set():
            return
        if is_quiet or now_s - self._marked_at_s >= MARK_EVERY_S:
            self._is_marking = True
            self._hand_over(())
        else:
            self._mark_soon()

    def _note_mark(self) -> None:
        """Note that the mark was written, or will be tried again because the disk is full."""
        self._jobs_handed -= 1
        self._is_marking = False
        self._marked_at_s = self._loop.time()
        self._mark_soon()

    # All from here on runs in the writer thread.

    def _run(self) -> None:
        try:
            while (jobs := self._take()) is not None:
                if () in jobs:
                    self._mark()
                    self._loop.call_soon_threadsafe(self._note_mark)
                self._write_all([job for job in jobs if job])
            if not (self._is_failed or self._tail.is_marked):
                self._mark()
        except Exception as error:  # noqa: BLE001 - it is reported, or all would wait
            self._loop.call_soon_threadsafe(self._fail, error)

    def _take(self) -> Sequence[Sequence[bytes]] | None:
        """Wait for a job, and return all that are there; None when the journal is closed."""
        job = self._jobs.get()
        if job is None:
            return None
        jobs = [job]
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is None:
                self._jobs.put(None)
                break
            jobs.append(job)
        return jobs

    def _write_all(self, jobs: Sequence[Sequence[bytes]]) -> None:
        """Write the payloads of jobs, and report each sync; the last one completes the jobs."""
        payloads = [payload for job in jobs for payload in job]
        while payloads:
            payloads = payloads[self._write(payloads) :]
            sequence, sync_s = self._tail.end.sequence, self._tail.sync_s
            jobs_done = 0 if payloads else len(jobs)
            self._loop.call_soon_threadsafe(self._note_sync, sequence, sync_s, jobs_done)

    def _write(self, payloads: Sequence[bytes]) -> int:
        """Write some of the payloads, and return how many; while the disk is full, try again.

        Nothing of them was synced or reported, so the same bytes go to the same place.
        """
        while True:
            is_last_try = self._closing.is_set()
            try:
                written = self._tail.write(payloads)
            except DiskFull as full:
                if is_last_try:
                    raise OSError(errno.ENOSPC, "no space left, and it closes") from full
                self.is_stuck = True
                self._closing.wait(self.full_retry_s)
            else:
                self.is_stuck = False
                return written

    def _mark(self) -> None:
        """Have the mark cover what is written; it may lag behind while the disk is full."""
        with contextlib.suppress(DiskFull):
            self._tail.mark()

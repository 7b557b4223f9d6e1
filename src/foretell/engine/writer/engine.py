"""The single writer: every command in one order, decided in memory, made durable, then published.

A command is applied at once, so that the next one sees its outcome; the caller, the streams and the
tables get it only when the journal has it. A refusal that may depend on a command that is not
durable yet waits too. If the journal fails the engine stops: memory and disk may differ, and only a
start from the journal resolves that. While the disk is nearly full no order is placed; while it is
full nothing is taken, and commands that were taken wait.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Final

import msgspec
import structlog

from foretell.domain.errors.exchange import (
    EngineBusy,
    EngineCancelOnly,
    EngineReadOnly,
    EngineRestarting,
    EngineStalled,
    EngineStopped,
)
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.storage import JournalDamaged, TablesBehindSnapshot
from foretell.domain.exchange.apply import Outcome, Result, apply
from foretell.domain.exchange.arrivals.order_limits import ORDER_LIMITS, OrderLimits
from foretell.domain.exchange.commands import (
    Command,
    ExpireOrders,
    PlaceOrder,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.snapshot import decode_state
from foretell.domain.exchange.state import State
from foretell.domain.exchange.state_effects import restored_effects
from foretell.domain.values.hexadecimal import word_bytes
from foretell.engine.protocol.endpoint import Subscriber
from foretell.engine.protocol.requests import CommittedCommand, committed_effects
from foretell.engine.writer.due_orders import EXPIRED_PER_COMMAND_MAX, DueOrders, is_due
from foretell.journal.port import Capacity, Journal
from foretell.runtime.garbage_collection import garbage_collection_paused

WAITING_MAX: Final = 50_000
REPLAY_BATCH: Final = 2_000
STALLED_AFTER_S: Final = 10.0
"""How long the journal may make nothing durable before waiting callers are refused."""

log = structlog.get_logger(__name__)


Drain = Callable[[], Awaitable[None]]
"""Writes what subscribers hold in memory, if that is much."""


async def _drain_nothing() -> None:
    """Do nothing: no subscriber holds much."""


Settle = Callable[[Outcome | ForetellError], None]
"""Takes the outcome or the refusal of a command, once."""


class _Waiting:
    """A command that is applied but not durable; without `settle` its caller was refused."""

    __slots__ = ("outcome", "payload", "sequence", "settle")

    def __init__(
        self,
        sequence: int,
        outcome: Outcome | ForetellError,
        payload: bytes,
        settle: Settle | None,
    ) -> None:
        self.sequence = sequence
        self.outcome = outcome
        self.payload = payload
        self.settle = settle


class Engine:
    """The books and the ledger of one shard: the state that its journal folds into."""

    def __init__(
        self,
        journal: Journal,
        now_ms: Callable[[], int],
        *,
        stalled_after_s: float = STALLED_AFTER_S,
        replay_batch: int = REPLAY_BATCH,
        limits: OrderLimits = ORDER_LIMITS,
        expired_per_command_max: int = EXPIRED_PER_COMMAND_MAX,
    ) -> None:
        self.journal = journal
        self._now_ms = now_ms
        self._stalled_after_s = stalled_after_s
        self._replay_batch = replay_batch
        self._limits = limits
        self.due = DueOrders(lambda: self.state, self._commit, expired_per_command_max)
        self._waiting: deque[_Waiting] = deque()
        self._subscribers: list[Subscriber] = []
        self._failure: Exception | None = None
        self._synced_sequence = 0
        self._stall_watch: asyncio.TimerHandle | None = None
        self._is_ready = False
        self.failed = asyncio.Event()
        self.state = State()
        self.sequence = 0
        self.published_sequence = 0
        self.trades_behind: frozenset[str] = frozenset()
        """Trades that were tried and wait for earlier ones, as the tables show; no part of the state."""

    @property
    def is_ready(self) -> bool:
        """Whether commands are taken: the journal was replayed and has not failed since."""
        return self._is_ready and self._failure is None

    @property
    def journal_sequence(self) -> int:
        """The sequence at which the journal ends, known before it is replayed."""
        return self.journal.last_sequence

    def subscribe(self, subscriber: Subscriber) -> None:
        """Publish every later command to a subscriber, in order, once it is durable."""
        self._subscribers.append(subscriber)

    async def start(
        self, tables_sequence: int | None = None, drain_if_large: Drain = _drain_nothing
    ) -> None:
        """Restore the newest snapshot, replay the rest of the journal, and begin to take commands.

        Subscribers get the state that the tables were last written at (without tables, that of the
        snapshot), and every command after it. A snapshot that is newer than the tables would keep
        commands from them: then an older one is taken, or the whole journal is replayed, or the
        start is refused when its beginning was removed. `drain_if_large` is called between batches,
        so that subscribers that gather much can write it.
        """
        snapshot = await asyncio.to_thread(self.journal.snapshot, tables_sequence)
        if snapshot is None and tables_sequence is not None:
            await self._check_beginning(tables_sequence)
        with garbage_collection_paused():
            if snapshot is not None:
                self.state, self.sequence = decode_state(snapshot.payload), snapshot.sequence
            await self._replay(max(self.sequence, tables_sequence or 0), drain_if_large)
        self.journal.start(self._synced, self.fail)
        self._is_ready = True

    async def _replay(self, published_sequence: int, drain_if_large: Drain) -> None:
        """Replay the rest of the journal: silently to a sequence, then the state and every command.

        Without subscribers it is silent to the end.
        """
        if not self._subscribers:
            published_sequence = self.journal.last_sequence
        entries = self.journal.entries(self.sequence)
        self.state.tracks_book_changes = False
        for entry in entries if self.sequence < published_sequence else ():
            apply(self.state, decode_command(entry.payload))
            self.sequence = entry.sequence
            if entry.sequence == published_sequence:
                break
            if entry.sequence % self._replay_batch == 0:
                await asyncio.sleep(0)
        self.state.tracks_book_changes = True
        self.published_sequence = self.sequence
        if self._subscribers:
            await self._publish_state()
        for entry in entries:
            outcome = apply(self.state, decode_command(entry.payload))
            self.sequence = entry.sequence
            self._publish(CommittedCommand(entry.sequence, outcome, entry.payload))
            if entry.sequence % self._replay_batch == 0:
                await drain_if_large()
                await asyncio.sleep(0)

    async def _check_beginning(self, tables_sequence: int) -> None:
        newest = await self.journal.snapshot_sequence()
        if not newest:
            return
        try:
            next(iter(self.journal.entries()), None)
        except JournalDamaged as damage:
            raise TablesBehindSnapshot(tables_sequence, newest) from damage

    async def _publish_state(self) -> None:
        """Publish the state as it is now."""
        effects = restored_effects(self.state)
        while part := list(islice(effects, self._replay_batch)):
            self._publish(committed_effects(self.sequence, part))
            await asyncio.sleep(0)

    def clock_ms(self) -> int:
        """Return the time for a command: the clock's, but not earlier than an earlier command's."""
        return max(self.state.latest_ms, self._now_ms())

    @property
    def ahead_ms(self) -> int:
        """How far the time of commands is ahead of the clock, which was set back."""
        return max(0, self.state.latest_ms - self._now_ms())

    async def submit(self, command: Command) -> Result:
        """Return what the command did, once that is durable; or refuse, nothing having changed."""
        settled: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.begin(command, partial(_resolve, settled))
        return await settled

    def begin(self, command: Command, settle: Settle) -> None:
        """Apply a command; `settle` gets its outcome once that is durable, or its refusal.

        It is called at once when nothing has to become durable first. An order is placed, and so its trades are
        matched, no earlier than what came before: a minute that is over gets no trade.
        """
        try:
            self._check_open()
            self._check_capacity(command)
        except ForetellError as refusal:
            settle(refusal)
            return
        if isinstance(command, PlaceOrder):
            if command.at_ms < self.state.latest_ms:
                command = msgspec.structs.replace(command, at_ms=self.state.latest_ms)
            if self._has_room() and not self.due.precede(command):
                self.due.wait(command.condition_id, partial(self.begin, command, settle))
                return
        outcome = self._apply(command)
        if isinstance(outcome, Outcome) and outcome.is_change:
            self._enqueue(outcome, self._append(command), settle)
        elif self._waiting:
            self._enqueue(outcome, b"", settle)
        else:
            settle(outcome)

    async def sync(self) -> None:
        """Return when everything that was applied until now is durable."""
        if self._waiting:
            settled: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            nothing = Outcome(None, [], is_change=False)
            self._enqueue(nothing, b"", partial(_resolve, settled))
            await settled

    async def expire(self) -> bool:
        """Close expired orders and release delayed ones, if the journal has room; return that none is left."""
        while self._has_room() and is_due(self.state, self.clock_ms()):
            await self.submit(ExpireOrders(self.clock_ms(), self.due.per_command_max))
            await asyncio.sleep(0)
        while self._has_room() and self.state.delays.orders:
            self._check_open()
            is_all = self.due.release(self.clock_ms())
            await self.sync()
            if is_all:
                break
            await asyncio.sleep(0)
        return False

    async def close(self) -> None:
        """Stop accepting commands, and make durable those that were taken."""
        self._is_ready = False
        self.due.resume()
        await self.journal.close()
        if self._stall_watch is not None:
            self._stall_watch.cancel()
        await asyncio.sleep(0)

    def _check_open(self) -> None:
        if self._failure is not None:
            raise EngineStopped(str(self._failure))
        if not self._is_ready:
            raise EngineRestarting
        if len(self._waiting) + self.due.waiting_count >= WAITING_MAX:
            raise EngineBusy

    def _check_capacity(self, command: Command) -> None:
        """Refuse a command that the disk has no room for; an order that is known needs none."""
        capacity = self.journal.capacity
        if capacity is Capacity.AMPLE:
            return
        if isinstance(command, PlaceOrder):
            is_known = command.order_id in self.state.placement_by_order
            if capacity is Capacity.SCARCE and not is_known:
                raise EngineCancelOnly
            if is_known:
                return
        if capacity is Capacity.NONE:
            raise EngineReadOnly

    def _has_room(self) -> bool:
        return self.journal.capacity is not Capacity.NONE

    def _commit(self, command: Command) -> Outcome:
        """Apply and append a command of the engine's own, which precedes an order."""
        outcome = self._apply(command)
        assert isinstance(outcome, Outcome)
        if outcome.is_change:
            self._enqueue(outcome, self._append(command), None)
        return outcome

    def _apply(self, command: Command) -> Outcome | ForetellError:
        """Return the outcome or the refusal; an exception of another kind stops the engine."""
        try:
            return apply(self.state, command, self._limits)
        except ForetellError as refusal:
            return refusal
        except BaseException as fault:
            self.fail(EngineStopped(f"{type(fault).__name__} while applying a command"))
            raise

    def _append(self, command: Command) -> bytes:
        """Append an applied command to the journal; if that fails, the engine stops."""
        payload = encode_command(command)
        try:
            self.sequence = self.journal.append(payload, _command_id(command))
        except BaseException as fault:
            self.fail(EngineStopped(f"{type(fault).__name__} while writing a command"))
            raise
        return payload

    def _enqueue(
        self,
        outcome: Outcome | ForetellError,
        payload: bytes,
        settle: Settle | None,
    ) -> None:
        """Keep an outcome until the journal has everything before it, and its command if any."""
        self._waiting.append(_Waiting(self.sequence, outcome, payload, settle))
        if self._stall_watch is None:
            self._watch_for_stalls()

    def _watch_for_stalls(self) -> None:
        loop = asyncio.get_running_loop()
        self._stall_watch = loop.call_later(
            self._stalled_after_s, self._give_up, self._synced_sequence
        )

    def _give_up(self, sequence: int) -> None:
        """Refuse those who wait if nothing became durable since; their commands stay applied."""
        self._stall_watch = None
        if not self._waiting:
            return
        if sequence == self._synced_sequence:
            log.error("journal stalled", sequence=sequence)
            self._refuse_waiting(lambda: EngineStalled(self._stalled_after_s))
        self._watch_for_stalls()

    def _refuse_waiting(self, refusal: Callable[[], ForetellError]) -> None:
        for waiting in self._waiting:
            settle, waiting.settle = waiting.settle, None
            if settle is not None:
                settle(refusal())

    def _synced(self, sequence: int) -> None:
        """Publish and resolve, in order, all commands up to the sequence that is durable now."""
        self._synced_sequence = sequence
        while self._waiting and self._waiting[0].sequence <= sequence:
            waiting = self._waiting.popleft()
            outcome, payload = waiting.outcome, waiting.payload
            if payload and isinstance(outcome, Outcome) and outcome.has_effects:
                self._publish(CommittedCommand(waiting.sequence, outcome, payload))
            resolve(waiting)

    def fail(self, failure: Exception) -> None:
        """Stop: refuse the commands that wait, and all later ones."""
        self._failure = failure
        log.error("journal failed", cause=str(failure))
        self._refuse_waiting(lambda: EngineStopped(str(failure)))
        self._waiting.clear()
        self.due.resume()
        self.failed.set()

    def _publish(self, committed: CommittedCommand) -> None:
        self.published_sequence = committed.sequence
        for subscriber in self._subscribers:
            subscriber(committed)


def _command_id(command: Command) -> bytes | None:
    """Return what the journal keeps once only: the hash of an order."""
    return word_bytes(command.order_id) if isinstance(command, PlaceOrder) else None


def resolve(waiting: _Waiting) -> None:
    """Give a caller the outcome of its command, or the refusal."""
    if waiting.settle is not None:
        waiting.settle(waiting.outcome)


def _resolve(settled: asyncio.Future[Result], outcome: Outcome | ForetellError) -> None:
    """Give a caller that still waits the result of its command, or the refusal."""
    if settled.done():
        return
    if isinstance(outcome, ForetellError):
        settled.set_exception(outcome)
        settled.exception()  # retrieved here, since its caller may be gone
    else:
        settled.set_result(outcome.result)

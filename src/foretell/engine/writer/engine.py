"""The single writer: every command in one order, decided in memory, made durable, then told.

A command is applied at once, so the next one sees its outcome; its caller, the streams and the
tables hear of it only when the journal has it. A refusal waits too when it could rest on a command
that is not durable yet. If the journal fails the engine stops for good: what it holds in memory and
what is on disk may differ, and only a start from the journal makes them one again. While the disk is
nearly full no order is placed; while it is full nothing is taken, and what was taken waits.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

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
from foretell.domain.exchange.commands import (
    Command,
    ExpireOrders,
    PlaceOrder,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.effects import Effect
from foretell.domain.exchange.snapshot import decode_state
from foretell.domain.exchange.state import State
from foretell.domain.exchange.state_effects import restored_effects
from foretell.domain.values.hexadecimal import word_bytes
from foretell.engine.protocol.requests import CommittedCommand, Subscriber
from foretell.journal.port import Capacity, Journal, Snapshot
from foretell.runtime.garbage_collection import collection_paused

WAITING_MAX: Final = 50_000
REPLAY_BATCH: Final = 2_000
EXPIRY_LOOK_S: Final = 1.0
STALLED_AFTER_S: Final = 10.0

log = structlog.get_logger(__name__)


Drain = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Relieve nobody."""


class _Waiting(NamedTuple):
    sequence: int
    outcome: Outcome | ForetellError
    effects: Sequence[Effect]
    answer: asyncio.Future[Result]


class Engine:
    """Books and ledger of one shard, and the journal that they are a fold of."""

    def __init__(self, journal: Journal, now_ms: Callable[[], int]) -> None:
        self._journal = journal
        self._now_ms = now_ms
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

    @property
    def is_ready(self) -> bool:
        """Whether commands are taken: the journal was replayed and has not failed since."""
        return self._is_ready and self._failure is None

    @property
    def journal_sequence(self) -> int:
        """The sequence at which the journal ends, which is known before it is read."""
        return self._journal.last_sequence

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell this one of every command from now on, in order, once it is durable."""
        self._subscribers.append(subscriber)

    async def start(
        self, tables_sequence: int | None = None, drain_if_large: Drain = _nothing
    ) -> None:
        """Restore the newest snapshot, fold the rest of the journal, and begin to take commands.

        The hearers are told of everything that was there when the tables were written last, and of
        every command after it; where there are no tables, after the snapshot. A snapshot that the
        tables are behind would keep commands from them: then the whole journal is folded, or the
        start is refused when its beginning is gone. What hearers cannot hold for long they put away
        when they are relieved.
        """
        snapshot = await asyncio.to_thread(self._journal.snapshot)
        with collection_paused():
            if snapshot is not None and self._may_begin_with(snapshot, tables_sequence):
                self.state, self.sequence = decode_state(snapshot.payload), snapshot.sequence
            await self._replay(max(self.sequence, tables_sequence or 0), drain_if_large)
        self._journal.start(self._synced, self._fail)
        self._is_ready = True

    async def _replay(self, published_sequence: int, drain_if_large: Drain) -> None:
        """Fold what follows in the journal, in silence up to a sequence at which the state is told.

        With nobody to hear it is silent to the end.
        """
        if not self._subscribers:
            published_sequence = self._journal.last_sequence
        entries = self._journal.entries(self.sequence)
        self.state.tracks_book_changes = False
        for entry in entries if self.sequence < published_sequence else ():
            apply(self.state, decode_command(entry.payload))
            self.sequence = entry.sequence
            if entry.sequence == published_sequence:
                break
            if entry.sequence % REPLAY_BATCH == 0:
                await asyncio.sleep(0)
        self.state.tracks_book_changes = True
        self.published_sequence = self.sequence
        if self._subscribers:
            await self._publish_state()
        for entry in entries:
            outcome = apply(self.state, decode_command(entry.payload))
            self.sequence = entry.sequence
            self._publish(CommittedCommand(entry.sequence, outcome.effects))
            if entry.sequence % REPLAY_BATCH == 0:
                await drain_if_large()
                await asyncio.sleep(0)

    def _may_begin_with(self, snapshot: Snapshot, tables_sequence: int | None) -> bool:
        if tables_sequence is None or snapshot.sequence <= tables_sequence:
            return True
        try:
            next(iter(self._journal.entries()), None)
        except JournalDamaged as damage:
            raise TablesBehindSnapshot(tables_sequence, snapshot.sequence) from damage
        return False

    async def _publish_state(self) -> None:
        """Tell the hearers of everything that is there now."""
        effects = restored_effects(self.state)
        while part := list(islice(effects, REPLAY_BATCH)):
            self._publish(CommittedCommand(self.sequence, part))
            await asyncio.sleep(0)

    def clock_ms(self) -> int:
        """Return the time for a command: the clock's, and never earlier than a command before."""
        return max(self.state.latest_ms, self._now_ms())

    async def submit(self, command: Command) -> Result:
        """Return what the command did, once that is durable; or refuse, nothing having changed."""
        self._check_open()
        self._check_room(command)
        if isinstance(command, PlaceOrder):
            self._expire_before(command.at_ms)
        outcome = self._apply(command)
        is_change = isinstance(outcome, Outcome) and outcome.is_change
        if is_change:
            self._append(command)
        elif not self._waiting:
            return _result(outcome)
        return await self._enqueue(outcome, is_change=is_change)

    async def settle(self) -> None:
        """Return when everything that was applied until now is durable."""
        if self._waiting:
            await self._enqueue(Outcome(None, [], is_change=False), is_change=False)

    async def expire(self) -> None:
        """Take out, for ever, the orders whose time has come."""
        while True:
            expiry_s = self.state.next_expiry_s()
            is_due = expiry_s is not None and expiry_s * 1000 <= self.clock_ms()
            if is_due and self._journal.room is not Capacity.NONE:
                await self.submit(ExpireOrders(self.clock_ms()))
            await asyncio.sleep(EXPIRY_LOOK_S)

    async def close(self) -> None:
        """Take no more commands and make durable what was taken."""
        self._is_ready = False
        await self._journal.close()
        if self._stall_watch is not None:
            self._stall_watch.cancel()
        await asyncio.sleep(0)

    def _check_open(self) -> None:
        if self._failure is not None:
            raise EngineStopped(str(self._failure))
        if not self._is_ready:
            raise EngineRestarting
        if len(self._waiting) >= WAITING_MAX:
            raise EngineBusy

    def _check_room(self, command: Command) -> None:
        """Refuse what the disk has no room for; an order that is known needs none."""
        room = self._journal.room
        if room is Capacity.AMPLE:
            return
        if isinstance(command, PlaceOrder):
            is_known = command.order_id in self.state.placement_by_order
            if room is Capacity.SCARCE and not is_known:
                raise EngineCancelOnly
            if is_known:
                return
        if room is Capacity.NONE:
            raise EngineReadOnly

    def _expire_before(self, at_ms: int) -> None:
        """Nobody meets an order whose time is over, even if nobody took it out yet."""
        expiry_s = self.state.next_expiry_s()
        if expiry_s is None or expiry_s * 1000 > at_ms:
            return
        command = ExpireOrders(at_ms)
        outcome = self._apply(command)
        self._append(command)
        self._enqueue(outcome, is_change=True)

    def _apply(self, command: Command) -> Outcome | ForetellError:
        """Return the outcome or the refusal; a fault of ours in between stops the engine."""
        try:
            return apply(self.state, command)
        except ForetellError as refusal:
            return refusal
        except BaseException as fault:
            self._fail(EngineStopped(f"{type(fault).__name__} while applying a command"))
            raise

    def _append(self, command: Command) -> None:
        """Give what was applied to the journal; if that fails, memory is ahead of it for good."""
        try:
            self.sequence = self._journal.append(encode_command(command), _command_id(command))
        except BaseException as fault:
            self._fail(EngineStopped(f"{type(fault).__name__} while writing a command"))
            raise

    def _enqueue(
        self, outcome: Outcome | ForetellError, *, is_change: bool
    ) -> asyncio.Future[Result]:
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        effects = outcome.effects if is_change and isinstance(outcome, Outcome) else ()
        self._waiting.append(_Waiting(self.sequence, outcome, effects, answer))
        if self._stall_watch is None:
            self._watch_for_stalls()
        return answer

    def _watch_for_stalls(self) -> None:
        loop = asyncio.get_running_loop()
        self._stall_watch = loop.call_later(STALLED_AFTER_S, self._give_up, self._synced_sequence)

    def _give_up(self, sequence: int) -> None:
        """Let nobody wait when nothing became durable since; what was applied stays in its place."""
        self._stall_watch = None
        if not self._waiting:
            return
        if sequence == self._synced_sequence:
            log.error("journal stalled", sequence=sequence)
            self._refuse_waiting(lambda: EngineStalled(STALLED_AFTER_S))
        self._watch_for_stalls()

    def _refuse_waiting(self, refusal: Callable[[], ForetellError]) -> None:
        for waiting in self._waiting:
            if not waiting.answer.done():
                waiting.answer.set_exception(refusal())
                waiting.answer.exception()

    def _synced(self, sequence: int) -> None:
        self._synced_sequence = sequence
        while self._waiting and self._waiting[0].sequence <= sequence:
            waiting = self._waiting.popleft()
            if waiting.effects:
                self._publish(CommittedCommand(waiting.sequence, waiting.effects))
            if not waiting.answer.done():
                _settle(waiting)

    def _fail(self, failure: Exception) -> None:
        self._failure = failure
        log.error("journal failed", cause=str(failure))
        self._refuse_waiting(lambda: EngineStopped(str(failure)))
        self._waiting.clear()
        self.failed.set()

    def _publish(self, committed: CommittedCommand) -> None:
        self.published_sequence = committed.sequence
        for subscriber in self._subscribers:
            subscriber(committed)


def _command_id(command: Command) -> bytes | None:
    """Return what must be in the journal once: the hash of an order."""
    return word_bytes(command.order_id) if isinstance(command, PlaceOrder) else None


def _result(outcome: Outcome | ForetellError) -> Result:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.result


def _settle(waiting: _Waiting) -> None:
    if isinstance(waiting.outcome, Exception):
        waiting.answer.set_exception(waiting.outcome)
    else:
        waiting.answer.set_result(waiting.outcome.result)

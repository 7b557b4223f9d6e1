"""The tables of an engine in a child process, which is fed with what was committed.

The serving process only encodes each command, once, and sends frames of them a few times a second. What the
tables do not have is kept in a bounded feed: a process that is started again gets it again, and what
had no room is read by the process from the journal. Nothing here waits on the way of an order.
"""

import asyncio
import math
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog

from foretell.app.framed_child import ChildProgram
from foretell.app.running import DEFAULT_LOGS, LogOptions
from foretell.app.tables_process.child import MODULE, NAME, TablesChild
from foretell.app.tables_process.feed import Feed, FeedLimits, Frame
from foretell.app.tables_process.messages import (
    Begin,
    Flush,
    FromTables,
    Markets,
    ReplayJournal,
    Started,
    Wrote,
    decode_from_tables,
    frame_of,
    message,
)
from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.exchange.commands import OpenMarket
from foretell.engine.protocol.decided import encode_committed
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.projection import COMMANDS_BEHIND_MAX, HELD_AT_START_MAX, markets_of
from foretell.journal.port import JournalAddress
from foretell.runtime.child_processes import RestartBackoff, run_supervised
from foretell.runtime.loops import run_together
from foretell.store.database import Database
from foretell.store.trading.trades import load_sequence

MARKETS_PER_MESSAGE: Final = 1_000

log = structlog.get_logger(__name__)


class TablesLimits(NamedTuple):
    """Bounds of the feed and of waits."""

    feed: FeedLimits = FeedLimits()
    commands_per_frame: int = 500
    bytes_per_frame: int = 128 * 1024
    send_every_s: float = 0.05
    check_every_s: float = 1.0
    begins_within_s: float = 120.0
    hangs_after_s: float = 60.0
    """A process that gives no sign of life for longer, or none at all at its begin, is killed."""
    held_at_start_max: int = HELD_AT_START_MAX
    progress_deadline_s: float = 60.0
    """How long a start may wait for tables that do not advance."""
    close_deadline_s: float = 5.0
    restarts: RestartBackoff = RestartBackoff()


class RemoteTables:
    """The tables of an engine, and the process that writes them; see `engine.writer.tables.Tables`."""

    # `_taken` is the newest command that was published here, `_framed` the newest one in the feed, and
    # `sequence` the newest one in the tables. The process is either fed, or reads the journal
    # until `_replays_until`; it was not asked for either before it reported where the tables are.

    def __init__(
        self,
        database: Database,
        name: str,
        journal: JournalAddress,
        limits: TablesLimits | None = None,
        logs: LogOptions = DEFAULT_LOGS,
    ) -> None:
        self._database = database
        self._name = name
        self._begin = message(Begin(database.url, name, journal))
        self.limits = TablesLimits() if limits is None else limits
        self.child = TablesChild(
            ChildProgram(NAME, MODULE, logs),
            decode_from_tables,
            self._on_connected,
            self._on_message,
            self._pump,
        )
        self.sequence = self._taken = self._framed = 0
        self._flush_wanted = self._flushed = 0
        self._feed = Feed(0, self.limits.feed)
        self._commands: list[msgspec.Raw] = []
        self._command_bytes = 0
        self._market_by_id: dict[str, OpenMarket] = {}
        self._new_markets: list[OpenMarket] = []
        self._is_started = False
        self._replays_until: int | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._progressed = asyncio.Event()
        self._overdue_at_s = math.inf
        self._running: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that no more orders should be taken."""
        return self._taken - self.sequence > COMMANDS_BEHIND_MAX

    async def start(self) -> None:
        """Load the sequence that the tables are at, and start the process, supervised from now on."""
        async with self._database.reading() as tx:
            sequence = await load_sequence(tx, self._name)
        self.sequence = self._taken = self._framed = sequence
        self._feed = Feed(sequence, self.limits.feed)
        supervision = partial(run_supervised, NAME, self.child, self.limits.restarts)
        self._running = asyncio.create_task(run_together([supervision, self._watch]))
        self._running.add_done_callback(lambda _: self._progressed.set())

    async def run(self) -> None:
        """Return or raise when the supervision ends; a cancellation leaves the process to `close`."""
        assert self._running is not None, "it was started"
        await asyncio.shield(self._running)

    async def close(self) -> None:
        """Have the process write what was published, and end it; the journal has what is left."""
        if self._running is None:
            return
        tasks = {self._running, asyncio.create_task(self.catch_up())}
        deadline_s = self.limits.close_deadline_s
        await asyncio.wait(tasks, timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        if self.sequence < self._taken:
            log.warning("tables are behind at the end", sequence=self.sequence, until=self._taken)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running = None

    async def drain_if_large(self) -> None:
        """Return when little waits and a process works on it, or refuse if it does not advance.

        Complete tables need no process yet, whose imports take longer than the rest of a start.
        """
        most = self.limits.held_at_start_max
        while self._taken - self.sequence > (most if self._is_started else 0):
            try:
                async with asyncio.timeout(self.limits.progress_deadline_s):
                    await self._progress()
            except TimeoutError:
                raise StoreUnavailable("the tables do not advance") from None

    async def catch_up(self) -> None:
        """Return when everything that was taken until now is written."""
        wanted = self._taken
        while self.sequence < wanted:
            self.flush_now()
            await self._progress()

    def on_committed(self, committed: CommittedCommand) -> None:
        """Encode a command for the process, unless the tables have it already."""
        for market in markets_of(committed):
            self._market_by_id[market.condition_id] = market
            self._new_markets.append(market)
        if committed.sequence <= self._taken:
            return
        self._taken = committed.sequence
        encoded = encode_committed(committed)
        self._commands.append(encoded)
        self._command_bytes += len(encoded)
        if self._is_frame_full():
            self._frame()
        elif self._sending is None:
            loop = asyncio.get_running_loop()
            self._sending = loop.call_later(self.limits.send_every_s, self._frame)

    def flush_now(self) -> None:
        """Have the process write what was taken without gathering more; it is asked once."""
        if self._flush_wanted < self._taken:
            self._flush_wanted = self._taken
            self._frame()
            self._pump()

    def _is_frame_full(self) -> bool:
        return (
            len(self._commands) >= self.limits.commands_per_frame
            or self._command_bytes >= self.limits.bytes_per_frame
        )

    def _frame(self) -> None:
        """Put the encoded commands into the feed, and send what can be sent."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        if not self._commands:
            return
        payload = frame_of(self._framed, self._commands)
        frame = Frame(self._framed, self._taken, len(self._commands), payload)
        self._framed = self._taken
        self._commands, self._command_bytes = [], 0
        is_complete = self._feed.add(frame)
        if self._is_started and self._replays_until is None and not is_complete:
            self._replay()
        self._pump()

    def _pump(self) -> None:
        """Send frames while the process reads them."""
        if not self._is_started or self._replays_until is not None:
            return
        self._send_markets()
        while self.child.has_room and (frame := self._feed.next_unsent()) is not None:
            self.child.send(frame.payload)
        if self._flushed < self._flush_wanted and self._feed.is_sent:
            self._flushed = self._flush_wanted
            self.child.send(message(Flush()))

    def _replay(self) -> None:
        """Have the process read the journal: the feed lacks commands that the tables lack."""
        log.warning("tables read the journal", sequence=self.sequence, until=self._taken)
        self._replays_until = self._taken
        self._send_markets()
        self.child.send(message(ReplayJournal(self._taken)))

    def _send_markets(self) -> None:
        while part := self._new_markets[:MARKETS_PER_MESSAGE]:
            self.child.send(message(Markets(part)))
            del self._new_markets[: len(part)]

    def _on_connected(self) -> None:
        self._is_started, self._replays_until, self._flushed = False, None, 0
        self._overdue_at_s = asyncio.get_running_loop().time() + self.limits.begins_within_s
        self._feed.begin_again()
        self._new_markets = list(self._market_by_id.values())
        self.child.send(self._begin)

    def _on_message(self, received: FromTables) -> None:
        self._overdue_at_s = asyncio.get_running_loop().time() + self.limits.hangs_after_s
        if isinstance(received, Started):
            self._is_started = True
            self._advance(received.sequence)
            self._feed_or_replay()
        elif isinstance(received, Wrote):
            self._advance(received.sequence)
            if self._database.is_sqlite:
                self._database.topics.announce(received.topics)
            if self._replays_until is not None and self.sequence >= self._replays_until:
                self._feed_or_replay()

    def _advance(self, sequence: int) -> None:
        self.sequence = sequence
        self._feed.confirm(sequence)
        self._progressed.set()

    def _feed_or_replay(self) -> None:
        """Feed the process from its sequence on, or have it read the journal until it can be fed."""
        self._replays_until = None
        if self._feed.is_complete_after(self.sequence):
            self._pump()
        else:
            self._replay()

    async def _progress(self) -> None:
        """Return when the process has reported; raise what ended its supervision."""
        self._progressed.clear()
        await self._progressed.wait()
        if self._running is not None and self._running.done():
            self._running.result()

    async def _watch(self) -> None:
        """Kill a process that hangs, so that its supervisor starts another."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.limits.check_every_s)
            if loop.time() > self._overdue_at_s:
                log.error("tables process hangs and is killed")
                self._overdue_at_s = math.inf
                self.child.kill()

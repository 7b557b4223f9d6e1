"""The projection of the journal into tables: orders, trades, fills and quotes, exactly once.

The rows of a batch of commands, the sequence that the tables are at and the digest of its command are written in
one transaction, which begins by advancing that sequence from the value known here. So a restart resumes where it
stopped, and two processes that write the same commands write them once. The tables may be some
milliseconds behind the engine; no order waits for them.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Final, cast

from foretell.domain.errors.storage import StoreUnavailable, TablesSetBack
from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.decision import Done
from foretell.domain.exchange.effects import MarketOpened, MarketRestored
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.sharding import ALONE
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.table_rows import TableRows
from foretell.runtime.worker import PollIntervals, run_worker
from foretell.store.database import Database
from foretell.store.trading.projected import ProjectionEnd, record_end
from foretell.store.trading.trades import Quote, advance_sequence, load_quotes, load_sequence

COMMANDS_PER_WRITE_MAX: Final = 2_500
COMMANDS_BEHIND_MAX: Final = 100_000
HELD_AT_START_MAX: Final = 10_000
PACE: Final = PollIntervals(busy_s=0.5, idle_s=0.1)
"""How long to gather commands between two writes: each costs milliseconds, however small it is.

While there are many, more are gathered: their ids are hashes, so each changes pages of indexes, and a
page that several change is written once. `flush_now` ends the pause for a request that waits for the tables.
"""
BUSY_COMMANDS: Final = 50
GAP_S: Final = 0.01
"""Between two writes without a pause: SQLite has one writer, and others look for a gap to begin."""

Opening = MarketOpened | MarketRestored
OPENINGS: Final = frozenset({MarketOpened, MarketRestored})

Written = Callable[[int, Collection[str]], None]
"""Takes the sequence that the tables are at after a write, and the topics that it announced."""


def _written(sequence: int, topics: Collection[str]) -> None:
    """Do nothing: the watches of this process were woken by the commit."""
    del sequence, topics


def markets_of(committed: CommittedCommand) -> Sequence[OpenMarket]:
    """Return the markets that a command opened or restored; orders open none."""
    if not isinstance(committed.decision, Done):
        return ()
    return [
        cast("Opening", effect).market for effect in committed.effects if type(effect) in OPENINGS
    ]


class Projection:
    """The tables' side of one engine; each of several has a name of its own."""

    def __init__(
        self,
        database: Database,
        name: str = ALONE.name,
        *,
        held_at_start_max: int = HELD_AT_START_MAX,
        on_written: Written = _written,
    ) -> None:
        self._database = database
        self._name = name
        self._held_at_start_max = held_at_start_max
        self._on_written = on_written
        self.pending: list[CommittedCommand] = []
        self._wakes = asyncio.Event()
        self._flushes = asyncio.Event()
        self._flush_sequence = 0
        self.set_back = asyncio.Event()
        """Set once the tables lack commands that were written: they are not here any more."""
        self._market_by_id: dict[Bytes32, OpenMarket] = {}
        self._quote_by_id: dict[Bytes32, Quote] = {}
        self.sequence = 0

    async def start(self) -> None:
        """Load the sequence that the tables are at."""
        async with self._database.reading() as tx:
            self.sequence = await load_sequence(tx, self._name)
            self._quote_by_id = dict(await load_quotes(tx))

    def add_market(self, market: OpenMarket) -> None:
        """Take a market that was opened, whose trades may come."""
        self._market_by_id[market.condition_id] = market

    def on_committed(self, committed: CommittedCommand) -> None:
        """Take the effects of a command, unless the tables have them already."""
        for market in markets_of(committed):
            self.add_market(market)
        if committed.sequence > self.sequence:
            self.pending.append(committed)
            self._wakes.set()
            if len(self.pending) == COMMANDS_PER_WRITE_MAX:
                self._flushes.set()

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that no more orders should be taken."""
        return len(self.pending) > COMMANDS_BEHIND_MAX

    async def drain_if_large(self) -> None:
        """Write what was taken if it is much: a start may publish a whole journal."""
        if len(self.pending) >= self._held_at_start_max:
            await self.catch_up()

    async def run(self) -> None:
        """Write what was taken, until cancelled."""
        await run_worker(
            "projection", self.run_once, PACE, self.gather, expected=(StoreUnavailable,)
        )

    async def run_once(self) -> bool:
        """Write a part of what was taken, and return whether it was much."""
        self._flushes.clear()
        count = await self._write()
        if len(self.pending) >= COMMANDS_PER_WRITE_MAX or self.sequence < self._flush_sequence:
            self._flushes.set()
            await asyncio.sleep(GAP_S)
        return count >= BUSY_COMMANDS

    def flush_now(self) -> None:
        """Write what was taken without the pause."""
        if self.pending:
            self._flush_sequence = self.pending[-1].sequence
        self._flushes.set()

    async def catch_up(self) -> None:
        """Write everything that was taken until now; the next call repeats what fails."""
        while self.pending:
            await self._write()

    async def close(self) -> None:
        """Release nothing: the database is the owner's, and the journal has what is not written."""

    async def gather(self, seconds: float) -> None:
        """Return after so many seconds, or a flush, once there is something to write."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._flushes.wait()
        await self._wakes.wait()

    async def _write(self) -> int:
        """Write a part of what was taken, and return how many commands that were."""
        part = self.pending[:COMMANDS_PER_WRITE_MAX]
        if part and await self._record(part):
            self.sequence = part[-1].sequence
            del self.pending[: len(part)]
        if not self.pending:
            self._wakes.clear()
        return len(part)

    async def _record(self, part: list[CommittedCommand]) -> bool:
        """Write the rows of commands, or return False when the tables are at another sequence."""
        rows = TableRows(self._market_by_id, self._quote_by_id)
        for committed in part:
            for effect in committed.effects:
                rows.apply(committed.sequence, effect)
        sequence, digest = part[-1].sequence, part[-1].digest
        async with self._database.writing() as tx:
            is_next = await advance_sequence(tx, self._name, self.sequence, sequence)
            if is_next:
                await rows.record(tx)
                if digest:
                    await record_end(tx, self._name, ProjectionEnd(sequence, digest.hex()))
        if not is_next:
            await self._resume()
            return False
        self._quote_by_id.update(rows.quote_by_id())
        self._on_written(sequence, tuple(tx.announced))
        return True

    async def _resume(self) -> None:
        """Go on from the sequence that another process has written, such as a parent's last child."""
        async with self._database.reading() as tx:
            sequence = await load_sequence(tx, self._name)
            quotes = await load_quotes(tx)
        if sequence < self.sequence:
            self.set_back.set()
            raise TablesSetBack(self.sequence, sequence)
        self.sequence, self._quote_by_id = sequence, dict(quotes)
        self.pending = [each for each in self.pending if each.sequence > self.sequence]
        self._on_written(self.sequence, ())

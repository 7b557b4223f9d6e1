"""The process that writes an engine's tables.

Argument: the number of a socket that it inherits. It is fed with commands, writes their rows and reports the
sequence of each write; asked to, it reads commands in the journal. It ends when the other end of the
socket closes: what is not written then is in the journal.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from functools import partial
from typing import Final

from typing_extensions import override

from foretell.app.framed_process import ServingConnection, run_framed
from foretell.app.tables_process.messages import (
    Alive,
    Begin,
    Commands,
    Flush,
    Markets,
    Started,
    Wrote,
    decode_to_tables,
    message,
)
from foretell.domain.errors.storage import StoreUnavailable, TablesBehindSnapshot
from foretell.engine.protocol.decided import committed_of
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.catch_up import CatchUp
from foretell.engine.writer.projection import PACE, Projection
from foretell.runtime.garbage_collection import (
    collect_when_idle,
    garbage_collection_paused,
)
from foretell.runtime.loops import run_together
from foretell.runtime.worker import Wait, run_watching_worker
from foretell.store.database import Database

BEGIN_DEADLINE_S: Final = 60.0
HELD_COMMANDS_MAX: Final = 10_000
HELD_BYTES_MAX: Final = 16 * 1024 * 1024
"""Commands that wait to be written, and their bytes, above which nothing more is read."""
REPLAY_BATCH: Final = 500
LOOK_S: Final = 0.01


class TablesWriter(ServingConnection):
    """The connection to the engine, and the projection that it feeds."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: asyncio.Future[Begin] = asyncio.get_running_loop().create_future()
        self._projection: Projection | None = None
        self._taken = 0
        self._held: deque[tuple[int, int]] = deque()
        self._held_bytes = 0
        self._replay_until = 0
        self._replays = asyncio.Event()
        self._catch_up: CatchUp | None = None

    @override
    async def run(self) -> None:
        """Write what comes, until cancelled."""
        alive = partial(self.stay_alive, message(Alive()))
        await run_together([alive, self._write, collect_when_idle])

    async def _write(self) -> None:
        async with asyncio.timeout(BEGIN_DEADLINE_S):
            begin = await self._begun
        async with Database(begin.url) as database:
            projection = Projection(database, begin.name, on_written=self._on_written)

            async def start() -> Wait:
                await projection.start()
                self._projection, self._taken = projection, projection.sequence
                self.send(message(Started(self._taken)))
                return projection.gather

            writing = partial(
                run_watching_worker,
                "projection",
                projection.run_once,
                PACE,
                start,
                expected=(StoreUnavailable,),
            )
            refusing = partial(_refuse_when_set_back, projection)
            await run_together([writing, refusing, partial(self._replay, begin, projection)])

    @override
    def take(self, message: bytes) -> None:
        received = decode_to_tables(message)
        if isinstance(received, Begin):
            self._begun.set_result(received)
            return
        if self._projection is None:
            raise ValueError("commands before the start was reported")
        if isinstance(received, Commands):
            self._take_commands(received, self._projection, len(message))
        elif isinstance(received, Markets):
            for market in received.markets:
                self._projection.add_market(market)
        elif isinstance(received, Flush):
            self._projection.flush_now()
        else:
            self._replay_until = received.until
            self._replays.set()

    def _take_commands(self, received: Commands, projection: Projection, size: int) -> None:
        """Take commands that follow those before; the state of a replay is not needed any more."""
        if received.after > self._taken:
            raise ValueError(f"commands after {received.after}, and {self._taken} was the last")
        self._catch_up = None
        for decided in received.commands:
            if decided.sequence > self._taken:
                self._take_command(committed_of(decided), projection)
        self._held.append((self._taken, size))
        self._held_bytes += size
        if self._holds_much(projection) and self._transport is not None:
            self._transport.pause_reading()

    def _take_command(self, committed: CommittedCommand, projection: Projection) -> None:
        if committed.sequence > self._taken:
            self._taken = committed.sequence
            projection.on_committed(committed)

    def _holds_much(self, projection: Projection) -> bool:
        return len(projection.pending) > HELD_COMMANDS_MAX or self._held_bytes > HELD_BYTES_MAX

    def _on_written(self, sequence: int, topics: Collection[str]) -> None:
        """Report a write, and read on if there is room for more."""
        self.send(message(Wrote(sequence, topics)))
        while self._held and self._held[0][0] <= sequence:
            self._held_bytes -= self._held.popleft()[1]
        assert self._projection is not None, "it has written"
        if self._transport is not None and not self._holds_much(self._projection):
            self._transport.resume_reading()

    async def _replay(self, begin: Begin, projection: Projection) -> None:
        """Read the journal when asked to, up to the sequence named, until cancelled."""
        while True:
            await self._replays.wait()
            self._replays.clear()
            until = self._replay_until
            with garbage_collection_paused():
                if self._catch_up is None:
                    self._catch_up = CatchUp(begin.journal, self._taken)
                for number, committed in enumerate(self._catch_up.committed(until)):
                    if committed is not None:
                        self._take_command(committed, projection)
                    if number % REPLAY_BATCH == 0:
                        await _room(projection)
            if projection.sequence >= until:
                self.send(message(Wrote(projection.sequence, ())))


async def _refuse_when_set_back(projection: Projection) -> None:
    """End this process when its tables lack what it wrote: the next one is fed from where they are."""
    await projection.set_back.wait()
    raise StoreUnavailable("its tables were set back")


async def _room(projection: Projection) -> None:
    """Let the projection write, and return when it can take more."""
    await asyncio.sleep(0)
    while len(projection.pending) > HELD_COMMANDS_MAX:  # noqa: ASYNC110 - publishes no event
        await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    run_framed(TablesWriter, lasting=(TablesBehindSnapshot,))

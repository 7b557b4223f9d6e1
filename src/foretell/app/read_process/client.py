"""Dear reads, answered in a child process: rendering thousands of rows would delay every other request.

The process starts with the first dear read, or some seconds after the server. It is started again when it ends or
hangs; a read that it had is refused.
Clients take turns, and what waits is bounded in number and in time.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog

from foretell.app.framed_child import ChildProgram, FramedChild, Process
from foretell.app.read_process.messages import (
    AnswerHead,
    BeginReads,
    FromReads,
    Read,
    decode_from_reads,
    message,
)
from foretell.app.read_process.unsent_answers import UnsentAnswers
from foretell.domain.errors.storage import ReadsBusy, ReadTooSlow
from foretell.runtime.child_processes import (
    RestartBackoff,
    start_when_possible,
    supervise,
)
from foretell.store.public_reads.places import ReadPlaces, WaitBounds
from foretell.store.public_reads.rests import ReadRests

NAME: Final = "dear reads"
MODULE: Final = "foretell.app.read_process.process"
RETRY_AFTER_S: Final = 1
MOVED_WAITING_MAX: Final = 16
"""While so many reads of a client wait, no more of those that the serving process can answer are moved."""

log = structlog.get_logger(__name__)


class DearReadLimits(NamedTuple):
    """How many dear reads run at once, in all and of one client; what waits; deadlines in seconds."""

    places: int = 2
    places_per_client: int = 1
    bounds: WaitBounds = WaitBounds(per_client=50, total=200)
    begins_s: float = 10.0
    """After so long it starts without a read, so that the first one need not wait for it."""
    start_s: float = 10.0
    answer_s: float = 20.0
    """From the request to the end of its answer; the process ends a statement at the deadline of its own."""
    restarts: RestartBackoff = RestartBackoff()
    unsent_bytes_per_client: int = 16 * 1024 * 1024
    """A client that has not read so much of its answers gets no other one."""
    unsent_bytes: int = 128 * 1024 * 1024


class DearAnswer(NamedTuple):
    """The answer to a read: its head, and its body in parts, which are taken away as they are sent."""

    head: AnswerHead
    parts: deque[bytes]


@dataclass(slots=True)
class _Waiting:
    done: asyncio.Future[None]
    head: AnswerHead | None = None
    parts: deque[bytes] = field(default_factory=deque)


class DearReads:
    """The process, and the reads that it answers."""

    def __init__(
        self, begin: BeginReads, rests: ReadRests, limits: DearReadLimits | None = None
    ) -> None:
        self._begin = message(begin)
        self.rests = rests
        """The use of clients, which includes what the process does for them."""
        self._read_s = begin.read_s
        self.limits = DearReadLimits() if limits is None else limits
        self._places = ReadPlaces(
            self.limits.places, self.limits.places_per_client, self.limits.bounds
        )
        self.unsent = UnsentAnswers(self.limits.unsent_bytes_per_client, self.limits.unsent_bytes)
        self._numbers = itertools.count(1)
        self._waiting_by_number: dict[int, _Waiting] = {}
        self._wanted = asyncio.Event()
        self._connected = asyncio.Event()
        self._child: FramedChild[FromReads] = FramedChild(
            ChildProgram(NAME, MODULE), decode_from_reads, self._on_connected, self._take
        )

    @property
    def process(self) -> Process | None:
        """The process while it runs."""
        return self._child.process

    @property
    def in_flight(self) -> int:
        """How many reads the process has."""
        return len(self._waiting_by_number)

    def is_moved(self, client: str) -> bool:
        """Return whether a read that the serving process can answer should come here.

        Its client reads much while others read little, the process is there, and few reads of the client wait.
        """
        few = self._places.waiting_of(client) < MOVED_WAITING_MAX
        return few and self._connected.is_set() and self.rests.yields(client)

    async def read(
        self, api: str, path: str, query: bytes, client: str, known: bytes
    ) -> DearAnswer:
        """Return the answer to a read of a client, which has the answers whose tags are known.

        Refuses with TooManyRequests or ReadsBusy where the read gets no place or no process in time, or the process ends,
        or its client does not read its answers, and with ReadTooSlow at its deadline.
        """
        await self._places.take(client)
        try:
            self.unsent.check(client)
            self._wanted.set()
            await self._await_process()
            return await self._ask(Read(next(self._numbers), api, path, query, client, known))
        finally:
            self._places.release(client)

    async def run(self) -> None:
        """Start the process for the first read, or before it, and keep it running, until cancelled."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.begins_s):
                await self._wanted.wait()
        try:
            await start_when_possible(NAME, self, self.limits.restarts.begin())
            await supervise(NAME, self, self.limits.restarts)
        finally:
            await self.stop()

    async def start(self) -> None:
        """Start the process."""
        await self._child.start()

    async def wait(self) -> int:
        """Return the exit code when the process has ended; the reads that it had are refused."""
        code = await self._child.wait()
        self._lose()
        return code

    async def stop(self) -> None:
        """End the process if it runs."""
        self._lose()
        await self._child.stop()

    def _on_connected(self) -> None:
        self._child.send(self._begin)
        self._connected.set()

    async def _await_process(self) -> None:
        try:
            async with asyncio.timeout(self.limits.start_s):
                while not self._connected.is_set():
                    await self._connected.wait()
        except TimeoutError:
            raise ReadsBusy(RETRY_AFTER_S) from None

    async def _ask(self, read: Read) -> DearAnswer:
        """Return the answer of the process; the time until then, or until a refusal, is use of the client."""
        began_s = self.rests.now_s()
        waiting = _Waiting(asyncio.get_running_loop().create_future())
        self._waiting_by_number[read.number] = waiting
        try:
            self._child.send(message(read))
            async with asyncio.timeout(self.limits.answer_s):
                await waiting.done
        except TimeoutError:
            log.warning("process hangs and is killed", process=NAME)
            self._connected.clear()
            self._child.kill()
            raise ReadTooSlow(self._read_s) from None
        finally:
            del self._waiting_by_number[read.number]
            self.rests.end(read.client, self.rests.now_s() - began_s)
        assert waiting.head is not None, "the head comes before the last part"
        return DearAnswer(waiting.head, waiting.parts)

    def _take(self, received: FromReads) -> None:
        """Take a part of an answer; nobody waits any more for one that was too late."""
        waiting = self._waiting_by_number.get(received.number)
        if waiting is None:
            return
        if isinstance(received, AnswerHead):
            waiting.head = received
            return
        waiting.parts.append(received.content)
        if received.is_last and not waiting.done.done():
            waiting.done.set_result(None)

    def _lose(self) -> None:
        """Refuse the reads that the process had."""
        self._connected.clear()
        for waiting in self._waiting_by_number.values():
            if not waiting.done.done():
                waiting.done.set_exception(ReadsBusy(RETRY_AFTER_S))

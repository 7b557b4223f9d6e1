"""Dear reads, answered in a child process: rendering thousands of rows would delay every other request.

The process starts with the first dear read, or some seconds after the server. It is started again when it ends or
hangs; a read that it had is refused. It works where others leave time: where they leave none it is replaced by one that
works beside them for some minutes.
Clients take turns, and what waits is bounded in number and in time.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog

from foretell.app.framed_child import ChildProgram, FramedChild, Process
from foretell.app.read_process.messages import (
    AnswerHead,
    BeginReads,
    FromReads,
    Part,
    Read,
    decode_from_reads,
    message,
)
from foretell.app.read_process.starvation import Starvation
from foretell.app.read_process.unsent_answers import UnsentAnswers
from foretell.app.running import DEFAULT_LOGS, LogOptions
from foretell.domain.errors.storage import ReadsBusy, ReadTooSlow
from foretell.runtime.child_processes import (
    RestartBackoff,
    start_when_possible,
    supervise,
)
from foretell.runtime.loops import run_together
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
    hangs_after_s: float = 60.0
    """A process that has not answered a read for longer is killed; a busy machine may take long to start one."""
    check_every_s: float = 1.0
    starved_after_s: float = 5.0
    """A process that has reads and gets no time of a processor for longer is replaced."""
    yields_again_after_s: float = 600.0
    """After so long the one that replaced it works where others leave time, too."""
    restarts: RestartBackoff = RestartBackoff()
    unsent_bytes_per_client: int = 16 * 1024 * 1024
    """A client that has not read so much of its answers gets no other one."""
    unsent_bytes: int = 128 * 1024 * 1024


class DearAnswer(NamedTuple):
    """The answer to a read: its head, and its body in parts, which are taken away as they are sent."""

    head: AnswerHead
    parts: deque[bytes]


class _Left(NamedTuple):
    """A read whose client has left or was refused at the deadline; it has its place until the process has answered."""

    client: str
    asked_s: float
    began_s: float
    """By the clock of rests."""


@dataclass(slots=True)
class _Waiting:
    done: asyncio.Future[None]
    head: AnswerHead | None = None
    parts: deque[bytes] = field(default_factory=deque)
    is_answered: bool = False


class DearReads:
    """The process, and the reads that it answers."""

    def __init__(
        self,
        begin: BeginReads,
        rests: ReadRests,
        limits: DearReadLimits | None = None,
        logs: LogOptions = DEFAULT_LOGS,
    ) -> None:
        self._begin = begin
        self._beside_until_s = 0.0
        """Until when the process works beside the others, also one that replaces it, by the loop's clock."""
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
        self._left_by_number: dict[int, _Left] = {}
        self._starvation = Starvation()
        self._wanted = asyncio.Event()
        self._connected = asyncio.Event()
        self._child: FramedChild[FromReads] = FramedChild(
            ChildProgram(NAME, MODULE, logs), decode_from_reads, self._on_connected, self._take
        )

    @property
    def process(self) -> Process | None:
        """The process while it runs."""
        return self._child.process

    @property
    def in_flight(self) -> int:
        """How many reads wait for an answer of the process."""
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
        number = next(self._numbers)
        try:
            self.unsent.check(client)
            self._wanted.set()
            await self._await_process()
            return await self._ask(Read(number, api, path, query, client, known))
        finally:
            if number not in self._left_by_number:
                self._places.release(client)

    async def run(self) -> None:
        """Start the process for the first read, or before it, and keep it running, until cancelled."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.begins_s):
                await self._wanted.wait()
        try:
            await start_when_possible(NAME, self, self.limits.restarts.begin())
            supervision = partial(supervise, NAME, self, self.limits.restarts)
            await run_together([supervision, self._watch])
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
        beside_s = max(0.0, self._beside_until_s - asyncio.get_running_loop().time())
        self._child.send(message(msgspec.structs.replace(self._begin, yields_after_s=beside_s)))
        self._connected.set()

    async def _watch(self) -> None:
        """Replace a process that hangs or is starved, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.limits.check_every_s)
            process = self.process if self._waiting_by_number or self._left_by_number else None
            if self._left_by_number and loop.time() > self._hangs_at_s():
                log.warning("process hangs and is killed", process=NAME)
                self._replace()
            elif self._starvation.look(
                None if process is None else process.pid, loop.time(), self.limits.starved_after_s
            ):
                log.warning("process gets no time of a processor and is replaced", process=NAME)
                self._replace()

    def _hangs_at_s(self) -> float:
        """Return when the oldest read whose client does not wait makes the process one that hangs."""
        asked_s = min(left.asked_s for left in self._left_by_number.values())
        return asked_s + self.limits.hangs_after_s

    def _replace(self) -> None:
        """Have another process work, beside the others: they may be why this one does not."""
        self._beside_until_s = asyncio.get_running_loop().time() + self.limits.yields_again_after_s
        self._lose()
        self._child.kill()

    async def _await_process(self) -> None:
        try:
            async with asyncio.timeout(self.limits.start_s):
                while not self._connected.is_set():
                    await self._connected.wait()
        except TimeoutError:
            raise ReadsBusy(RETRY_AFTER_S) from None

    async def _ask(self, read: Read) -> DearAnswer:
        """Return the answer of the process; the time until it has answered, or has ended, is use of the client."""
        began_s, loop = self.rests.now_s(), asyncio.get_running_loop()
        asked_s, waiting = loop.time(), _Waiting(loop.create_future())
        self._child.send(message(read))
        self._waiting_by_number[read.number] = waiting
        try:
            async with asyncio.timeout(self.limits.answer_s):
                await waiting.done
        except TimeoutError:
            raise ReadTooSlow(self._read_s) from None
        finally:
            is_asked = self._waiting_by_number.pop(read.number, None) is not None
            if is_asked and not waiting.is_answered:
                self._left_by_number[read.number] = _Left(read.client, asked_s, began_s)
            else:
                self.rests.end(read.client, self.rests.now_s() - began_s)
        assert waiting.head is not None, "the head comes before the last part"
        return DearAnswer(waiting.head, waiting.parts)

    def _take(self, received: FromReads) -> None:
        """Take a part of an answer; nobody waits any more for one that was too late."""
        waiting = self._waiting_by_number.get(received.number)
        if waiting is None:
            if isinstance(received, Part) and received.is_last:
                self._forget(received.number)
            return
        if isinstance(received, AnswerHead):
            waiting.head = received
            return
        waiting.parts.append(received.content)
        if received.is_last:
            waiting.is_answered = True
            if not waiting.done.done():
                waiting.done.set_result(None)

    def _forget(self, number: int) -> None:
        """Give back the place of a read whose client has left, if it has one."""
        left = self._left_by_number.pop(number, None)
        if left is not None:
            self._places.release(left.client)
            self.rests.end(left.client, self.rests.now_s() - left.began_s)

    def _lose(self) -> None:
        """Refuse the reads that the process had."""
        self._connected.clear()
        for number in list(self._left_by_number):
            self._forget(number)
        for waiting in self._waiting_by_number.values():
            if not waiting.done.done():
                waiting.done.set_exception(ReadsBusy(RETRY_AFTER_S))
        self._waiting_by_number.clear()

"""Dear reads, answered in a child process: rendering thousands of rows would delay every other request.

The process starts with the first dear read, or some seconds after the server. It is started again when it ends or
hangs; a read that it had is refused.
Clients take turns, and what waits is bounded in number and in time.
"""

import asyncio
import contextlib
import itertools
import socket
import sys
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog
from typing_extensions import override

from foretell.app.read_process.messages import (
    AnswerHead,
    BeginReads,
    FromReads,
    Read,
    decode_from_reads,
    message,
)
from foretell.domain.errors.storage import ReadsBusy, ReadTooSlow
from foretell.engine.protocol.framing import FramedConnection
from foretell.runtime.child_processes import (
    RestartBackoff,
    end_process,
    kill_process,
    start_process,
    supervise,
)
from foretell.store.read_places import ReadPlaces, WaitBounds

NAME: Final = "dear reads"
COMMAND: Final = (sys.executable, "-m", "foretell.app.read_process.process")
STOP_DEADLINE_S: Final = 5.0
RETRY_AFTER_S: Final = 1

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


class DearAnswer(NamedTuple):
    """The answer to a read: its head, and its body in parts."""

    head: AnswerHead
    parts: list[bytes]


@dataclass(slots=True)
class _Waiting:
    done: asyncio.Future[None]
    head: AnswerHead | None = None
    parts: list[bytes] = field(default_factory=list)


class DearReads:
    """The process, and the reads that it answers."""

    def __init__(self, begin: BeginReads, limits: DearReadLimits | None = None) -> None:
        self._begin = message(begin)
        self._read_s = begin.read_s
        self.limits = DearReadLimits() if limits is None else limits
        self._places = ReadPlaces(
            self.limits.places, self.limits.places_per_client, self.limits.bounds
        )
        self._numbers = itertools.count(1)
        self._waiting_by_number: dict[int, _Waiting] = {}
        self._wanted = asyncio.Event()
        self._connected = asyncio.Event()
        self._connection: _Connection | None = None
        self.process: asyncio.subprocess.Process | None = None

    @property
    def in_flight(self) -> int:
        """How many reads the process has."""
        return len(self._waiting_by_number)

    async def read(
        self, api: str, path: str, query: bytes, client: str, known: bytes
    ) -> DearAnswer:
        """Return the answer to a read of a client, which has the answers whose tags are known.

        Refuses with TooManyRequests or ReadsBusy where the read gets no place or no process in time, or the process ends,
        and with ReadTooSlow at its deadline.
        """
        await self._places.take(client)
        try:
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
            await self._start_first()
            await supervise(NAME, self, self.limits.restarts)
        finally:
            await self.stop()

    async def start(self) -> None:
        """Start the process."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                starting = asyncio.create_subprocess_exec(
                    *COMMAND,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
                self.process = await start_process(starting)
            loop = asyncio.get_running_loop()
            _, self._connection = await loop.create_connection(self._connect, sock=ours)
        except BaseException:
            ours.close()
            raise
        self._connection.send(self._begin)
        self._connected.set()

    async def wait(self) -> int:
        """Return the exit code when the process has ended; the reads that it had are refused."""
        assert self.process is not None, "it was started"
        code = await self.process.wait()
        self._lose()
        return code

    async def stop(self) -> None:
        """End the process if it runs."""
        self.disconnect()
        process, self.process, self._connection = self.process, None, None
        self._lose()
        if process is not None:
            await end_process(process, STOP_DEADLINE_S)

    def disconnect(self) -> None:
        """Close the connection to the process, which ends then."""
        if self._connection is not None:
            self._connection.disconnect()

    async def _start_first(self) -> None:
        """Start the process as soon as there are descriptors and memory for it."""
        pauses = self.limits.restarts.begin()
        while self.process is None:
            try:
                await self.start()
            except OSError as failure:
                log.warning("process cannot be started yet", process=NAME, cause=str(failure))
                await asyncio.sleep(next(pauses))

    async def _await_process(self) -> None:
        try:
            async with asyncio.timeout(self.limits.start_s):
                await self._connected.wait()
        except TimeoutError:
            raise ReadsBusy(RETRY_AFTER_S) from None

    async def _ask(self, read: Read) -> DearAnswer:
        waiting = _Waiting(asyncio.get_running_loop().create_future())
        self._waiting_by_number[read.number] = waiting
        try:
            assert self._connection is not None, "it is connected"
            self._connection.send(message(read))
            async with asyncio.timeout(self.limits.answer_s):
                await waiting.done
        except TimeoutError:
            log.warning("process hangs and is killed", process=NAME)
            self._connected.clear()
            if self.process is not None:
                kill_process(self.process)
            raise ReadTooSlow(self._read_s) from None
        finally:
            del self._waiting_by_number[read.number]
        assert waiting.head is not None, "the head comes before the last part"
        return DearAnswer(waiting.head, waiting.parts)

    def _connect(self) -> "_Connection":
        return _Connection(self)

    def take(self, received: FromReads) -> None:
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


class _Connection(FramedConnection):
    """Our end of the socket."""

    def __init__(self, reads: DearReads) -> None:
        super().__init__()
        self._reads = reads

    @override
    def take(self, message: bytes) -> None:
        self._reads.take(decode_from_reads(message))

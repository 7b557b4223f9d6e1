"""Recovery of order signers in a child process.

A recovery is the most expensive step of an order, and a thread would not take it off the serving
process: it competes with the event loop for the interpreter. All requests of one turn of the event loop
are sent in one piece. The process is started again when it ends or hangs, and unanswered requests are
sent again, because a recovery has no side effect. Every request has a deadline.
"""

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, cast

import structlog
from typing_extensions import override

from foretell.app.signer_recovery import process as recovery_process
from foretell.app.signer_recovery.process import ANSWER_BYTES, NO_SIGNER
from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.values.hexadecimal import Address, address_of
from foretell.runtime.child_processes import RestartBackoff, end_process, kill_process, supervise
from foretell.runtime.loops import run_together

COMMAND: Final = (sys.executable, "-m", recovery_process.__name__)

Process = asyncio.subprocess.Process
Spawn = Callable[..., Awaitable[Process]]

log = structlog.get_logger(__name__)


class RecoveryLimits(NamedTuple):
    """Bounds of the waiting requests, in number, attempts and seconds."""

    waiting_max: int = 10_000
    attempts_max: int = 3
    """Processes that may end over the first waiting request before it is refused."""
    check_every_s: float = 1.0
    answer_deadline_s: float = 5.0
    """A process that takes longer for its first waiting request hangs, and is killed."""
    recover_deadline_s: float = 10.0
    """How long a request may wait in all, attempts and restarts included, checks apart."""
    stop_deadline_s: float = 5.0
    restarts: RestartBackoff = RestartBackoff(most_s=1.0)


class _Request:
    """A digest with its signature, and the future of its signer."""

    __slots__ = ("answer", "attempts", "content", "first_sent_at_s", "sent_at_s")

    def __init__(self, content: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.content = content
        self.answer: asyncio.Future[Address] = loop.create_future()
        self.sent_at_s = self.first_sent_at_s = loop.time()
        self.attempts = 1

    def refuse(self, refusal: ForetellError) -> None:
        """Refuse the request, unless it was answered or canceled."""
        if not self.answer.done():
            self.answer.set_exception(refusal)


class SignerRecovery:
    """The process, and the requests that it has not answered yet.

    Answers have no number: the process answers in the order of the requests, so `_waiting` holds every
    request that was sent, canceled ones too, and the first answer belongs to the first of them. A new
    process has seen none of them, so all of `_waiting` is sent to it again before anything new.
    """

    def __init__(
        self,
        limits: RecoveryLimits | None = None,
        *,
        spawn: Spawn = asyncio.create_subprocess_exec,
    ) -> None:
        self.limits = RecoveryLimits() if limits is None else limits
        self._spawn = spawn
        self._waiting: deque[_Request] = deque()
        self._unsent: list[bytes] = []
        self._connection: _Connection | None = None
        self._process: Process | None = None

    @property
    def process_id(self) -> int | None:
        """The id of the process, None while there is none."""
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Keep the started process running, and refuse requests that are late, until cancelled."""
        supervision = partial(supervise, "signer recovery", self, self.limits.restarts)
        await run_together([supervision, self._watch_deadlines])

    async def recover(self, digest: bytes, signature: bytes) -> Address:
        """Return the signer of a digest with a normalized signature.

        Raises MalformedSignature when there cannot be one, and EngineBusy when too many requests
        wait or this one has waited too long.
        """
        if len(self._waiting) >= self.limits.waiting_max:
            raise EngineBusy
        loop = asyncio.get_running_loop()
        request = _Request(digest + signature, loop)
        self._waiting.append(request)
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append(request.content)
        return await request.answer

    async def start(self) -> None:
        """Start a process, and send it every request that waits."""
        self._process, self._connection = await self._begin()
        self._send_again()

    async def wait(self) -> int:
        """Return the exit code when the process has ended; a request that ended too many is refused."""
        assert self._process is not None, "it was started"
        code = await self._process.wait()
        if self._waiting and self._waiting[0].attempts >= self.limits.attempts_max:
            self._waiting.popleft().refuse(EngineBusy())
        return code

    async def stop(self) -> None:
        """End the process if it runs; requests wait for the next one."""
        connection, process = self._connection, self._process
        self._connection = self._process = None
        if connection is not None:
            connection.close()
        if process is not None:
            await end_process(process, self.limits.stop_deadline_s)

    async def close(self) -> None:
        """Refuse the requests that wait, and end the process."""
        while self._waiting:
            self._waiting.popleft().refuse(EngineRestarting())
        await self.stop()

    def on_answers(self, answers: bytes) -> None:
        """Resolve the first waiting requests with answers, which come in the same order."""
        for at in range(0, len(answers), ANSWER_BYTES):
            request = self._waiting.popleft()
            if request.answer.done():
                continue
            answer = answers[at : at + ANSWER_BYTES]
            if answer == NO_SIGNER:
                request.refuse(MalformedSignature("the signature of a point on the curve"))
            else:
                request.answer.set_result(address_of(answer[1:]))

    async def _begin(self) -> tuple[Process, "_Connection"]:
        """Return a process and its connection; a process without a connection ends by itself."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await self._spawn(
                    *COMMAND,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            _, connection = await loop.create_connection(lambda: _Connection(self), sock=ours)
        except BaseException:
            ours.close()
            raise
        return process, connection

    def _send(self) -> None:
        content, self._unsent = b"".join(self._unsent), []
        if self._connection is not None:
            self._connection.send(content)

    def _send_again(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._waiting = deque(request for request in self._waiting if not request.answer.done())
        for request in self._waiting:
            request.sent_at_s = now_s
        if self._waiting:
            self._waiting[0].attempts += 1
        self._unsent = [request.content for request in self._waiting]
        self._send()

    async def _watch_deadlines(self) -> None:
        """Refuse late requests, and kill a process that hangs, so that it is started again."""
        while True:
            await asyncio.sleep(self.limits.check_every_s)
            self._refuse_late()
            if self._process is not None and self._is_overdue():
                log.warning("signer recovery does not answer and is killed")
                kill_process(self._process)

    def _refuse_late(self) -> None:
        """Refuse requests that have waited too long since they were first sent, the oldest first."""
        late_at_s = asyncio.get_running_loop().time() - self.limits.recover_deadline_s
        for request in self._waiting:
            if request.first_sent_at_s > late_at_s:
                break
            request.refuse(EngineBusy())

    def _is_overdue(self) -> bool:
        if not self._waiting:
            return False
        waited_s = asyncio.get_running_loop().time() - self._waiting[0].sent_at_s
        return waited_s > self.limits.answer_deadline_s


class _Connection(asyncio.Protocol):
    """Our end of the socket."""

    def __init__(self, recovery: SignerRecovery) -> None:
        self._recovery = recovery
        self._transport: asyncio.WriteTransport | None = None
        self._received = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        end = len(received) - len(received) % ANSWER_BYTES
        self._received = received[end:]
        self._recovery.on_answers(received[:end])

    def send(self, content: bytes) -> None:
        """Send requests; a closed connection loses them, and they are sent again on the next."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(content)

    def close(self) -> None:
        """Close, after which no answer is received."""
        if self._transport is not None:
            self._transport.abort()

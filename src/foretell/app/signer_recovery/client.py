"""Signers recovered in a process of its own, beside the one that serves.

A recovery is the dearest step of an order, and threads would not take it off the serving process: they
fight with its event loop over the interpreter at every step. What is asked within one turn of the event
loop goes out in one piece. The process is started again when it ends or hangs, and what it was asked is
asked anew: a recovery changes nothing. Nobody waits longer for that than a while.
"""

import asyncio
import contextlib
import socket
import sys
from collections import deque
from typing import Final, cast

import structlog
from typing_extensions import override

from foretell.app.signer_recovery import process as recovering
from foretell.app.signer_recovery.process import ANSWER_BYTES, NO_SIGNER
from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.values.hexadecimal import Address, address_of

WAITING_MAX: Final = 10_000
ATTEMPTS_MAX: Final = 3
LOOK_S: Final = 1.0
ANSWER_DEADLINE_S: Final = 5.0
RECOVER_DEADLINE_S: Final = 10.0
"""How long whoever asks waits in all, attempts and restarts included; a look longer at most."""
RESTART_S: Final = 0.2
STOP_DEADLINE_S: Final = 5.0
COMMAND: Final = (sys.executable, "-m", recovering.__name__)

log = structlog.get_logger(__name__)


class _Asked:
    """A digest with its signature, and who waits for the answer."""

    __slots__ = ("answer", "asked_at_s", "attempts", "first_asked_at_s", "words")

    def __init__(self, words: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.words = words
        self.answer: asyncio.Future[Address] = loop.create_future()
        self.asked_at_s = self.first_asked_at_s = loop.time()
        self.attempts = 1


def _refuse(asked: _Asked, refusal: ForetellError) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(refusal)


class Recovery:
    """The process, and what it was asked and has not answered yet."""

    def __init__(self) -> None:
        self._waiting: deque[_Asked] = deque()
        self._unsent: list[bytes] = []
        self._line: _Line | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process."""
        self._process, self._line = await _begin(self)

    async def run(self) -> None:
        """Start the process again, for ever, when it has ended or does not answer."""
        while True:
            code = await self._end_of_process()
            log.error("recovery ended and is started again", code=code)
            self._give_up_on_first()
            await self._start_again()
            self._ask_anew()

    async def recover(self, digest: bytes, signature: bytes) -> Address:
        """Return who signed a digest with a normalized signature.

        Raises MalformedSignature when nobody can have, and EngineBusy when too many wait or this one
        has waited too long.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise EngineBusy
        loop = asyncio.get_running_loop()
        asked = _Asked(digest + signature, loop)
        self._waiting.append(asked)
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append(asked.words)
        return await asked.answer

    async def close(self) -> None:
        """End the process, and refuse those who wait."""
        line, process = self._line, self._process
        self._line = self._process = None
        while self._waiting:
            _refuse(self._waiting.popleft(), EngineRestarting())
        if line is not None:
            line.close()
        if process is not None:
            await _stop(process)

    def take_back(self, answers: bytes) -> None:
        """Give answers, in the order of the questions, to those who wait for them."""
        for at in range(0, len(answers), ANSWER_BYTES):
            asked = self._waiting.popleft()
            if asked.answer.done():
                continue
            answer = answers[at : at + ANSWER_BYTES]
            if answer == NO_SIGNER:
                asked.answer.set_exception(
                    MalformedSignature("the signature of a point on the curve")
                )
            else:
                asked.answer.set_result(address_of(answer[1:]))

    def _send(self) -> None:
        words, self._unsent = b"".join(self._unsent), []
        if self._line is not None:
            self._line.send(words)

    async def _end_of_process(self) -> int | None:
        """Return the code that the process ended with; one that does not answer is killed."""
        process = self._process
        assert process is not None, "it was started"
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await process.wait()
                    break
            self._refuse_late()
            if self._is_overdue():
                _kill(process)
        if self._line is not None:
            self._line.close()
            self._line = None
        return process.returncode

    async def _start_again(self) -> None:
        """Start the process, as soon as there are descriptors, memory and threads for it."""
        while True:
            await asyncio.sleep(RESTART_S)
            self._refuse_late()
            try:
                await self.start()
            except (OSError, RuntimeError) as failure:
                log.warning("recovery cannot be started yet", cause=str(failure))
            else:
                return

    def _refuse_late(self) -> None:
        """Refuse who has waited too long since it first asked; the first asked first."""
        late_at_s = asyncio.get_running_loop().time() - RECOVER_DEADLINE_S
        for asked in self._waiting:
            if asked.first_asked_at_s > late_at_s:
                break
            _refuse(asked, EngineBusy())

    def _is_overdue(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        return bool(self._waiting) and now_s - self._waiting[0].asked_at_s > ANSWER_DEADLINE_S

    def _give_up_on_first(self) -> None:
        """Refuse what the process ended over again and again."""
        if self._waiting and self._waiting[0].attempts >= ATTEMPTS_MAX:
            _refuse(self._waiting.popleft(), EngineBusy())

    def _ask_anew(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._waiting = deque(asked for asked in self._waiting if not asked.answer.done())
        for asked in self._waiting:
            asked.asked_at_s = now_s
        if self._waiting:
            self._waiting[0].attempts += 1
        self._unsent = [asked.words for asked in self._waiting]
        self._send()


class _Line(asyncio.Protocol):
    """Our end of the socket."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self._transport: asyncio.WriteTransport | None = None
        self._arrived = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        arrived = self._arrived + data if self._arrived else data
        end = len(arrived) - len(arrived) % ANSWER_BYTES
        self._arrived = arrived[end:]
        self._recovery.take_back(arrived[:end])

    def send(self, words: bytes) -> None:
        """Send questions; a line that is closed loses them."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(words)

    def close(self) -> None:
        """Hang up, after which nothing arrives."""
        if self._transport is not None:
            self._transport.abort()


async def _begin(recovery: Recovery) -> tuple[asyncio.subprocess.Process, _Line]:
    """Return a process and the line to it; one whose line cannot be made ends by itself."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        _, line = await loop.create_connection(lambda: _Line(recovery), sock=ours)
    except BaseException:
        ours.close()
        raise
    return process, line


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Wait for a process whose line is closed to end."""
    try:
        async with asyncio.timeout(STOP_DEADLINE_S):
            await process.wait()
    except TimeoutError:
        _kill(process)
        await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process, which may have ended just now."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()

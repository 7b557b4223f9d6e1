"""Recovery of order signers in a child process.

A recovery is the most expensive step of an order, and a thread would not take it off the serving
process: it competes with the event loop for the interpreter. The process is started again when it ends or
hangs, and unanswered requests are sent again, because a recovery has no side effect. Every request has a
deadline.
"""

import asyncio
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import structlog

from foretell.app.signer_recovery import process as recovery_process
from foretell.app.signer_recovery.connection import RecoveryConnection
from foretell.app.signer_recovery.curve import Recoverer
from foretell.app.signer_recovery.recovery_queue import RecoveryQueue
from foretell.app.signer_recovery.waiting_requests import (
    OnRecovered,
    RecoveryLimits,
    WaitingRequests,
)
from foretell.domain.errors.families import ForetellError
from foretell.domain.values.hexadecimal import Address
from foretell.domain.values.signer_recovery import ANSWER_BYTES, LATE, signer_of
from foretell.runtime.child_processes import end_process, kill_process, start_process, supervise
from foretell.runtime.loops import run_together
from foretell.runtime.spawning import spawn
from foretell.trading.accounts.signers import SettleSigner, resolve_signer

COMMAND: Final = (sys.executable, "-m", recovery_process.__name__)

Process = asyncio.subprocess.Process
Spawn = Callable[..., Awaitable[Process]]

log = structlog.get_logger(__name__)


class SignerRecovery:
    """The process, and the queues of requests that it answers."""

    def __init__(
        self,
        limits: RecoveryLimits | None = None,
        *,
        spawn: Spawn = spawn,
    ) -> None:
        self._spawn = spawn
        self._waiting = WaitingRequests(RecoveryLimits() if limits is None else limits)
        self._recoverer = Recoverer()
        self._process: Process | None = None
        self._queue = self.open_queue(self._settle_first)
        self._settle_in_order: deque[SettleSigner] = deque()

    @property
    def limits(self) -> RecoveryLimits:
        """The bounds of the requests that wait."""
        return self._waiting.limits

    @limits.setter
    def limits(self, limits: RecoveryLimits) -> None:
        self._waiting.limits = limits

    @property
    def process_id(self) -> int | None:
        """The id of the process, None while there is none."""
        return None if self._process is None else self._process.pid

    def open_queue(self, on_recovered: OnRecovered) -> RecoveryQueue:
        """Return a queue whose answers are passed to a callback, in the thread of the event loop."""
        return RecoveryQueue(self._waiting, self._recoverer, on_recovered)

    async def recover(self, digest: bytes, signature: bytes) -> Address:
        """Return the signer of a digest with a normalized signature, or refuse as `submit` does."""
        settled: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        self.submit(digest, signature, partial(resolve_signer, settled))
        return await settled

    def submit(self, digest: bytes, signature: bytes, settle: SettleSigner) -> None:
        """Recover the signer of a digest with a normalized signature, and call back with it.

        Refuses with MalformedSignature when there cannot be one, with EngineBusy when too many requests
        wait or this one has waited too long, and with EngineRestarting after the end.
        """
        try:
            self._queue.submit(digest + signature)
        except ForetellError as refusal:
            settle(refusal)
        else:
            self._settle_in_order.append(settle)

    async def run(self) -> None:
        """Keep the started process running, and refuse requests that are late, until cancelled."""
        supervision = partial(supervise, "signer recovery", self, self.limits.restarts)
        await run_together([supervision, self._watch_deadlines])

    async def start(self) -> None:
        """Start a process, and send it every request that waits."""
        self._process, connection = await self._begin()
        self._waiting.connect(connection, asyncio.get_running_loop().time())

    async def wait(self) -> int:
        """Return the exit code when the process has ended; a piece that ended too many is refused."""
        assert self._process is not None, "it was started"
        code = await self._process.wait()
        self._waiting.disconnect()
        first = self._waiting.first
        if first is not None and first.attempts >= self.limits.attempts_max:
            self._waiting.refuse_first(LATE)
        return code

    async def stop(self) -> None:
        """End the process if it runs; requests wait for the next one."""
        self._waiting.disconnect()
        process, self._process = self._process, None
        if process is not None:
            await end_process(process, self.limits.stop_deadline_s)

    async def close(self) -> None:
        """Refuse the requests that wait and all that come, and end the process."""
        self._waiting.close()
        await self.stop()

    async def _begin(self) -> tuple[Process, RecoveryConnection]:
        """Return a process and its connection; a process without a connection ends by itself."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                starting = self._spawn(
                    *COMMAND,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
                process = await start_process(starting)
            return process, RecoveryConnection(ours, self._waiting.on_answers)
        except BaseException:
            ours.close()
            raise

    def _settle_first(self, answers: bytes) -> None:
        """Settle the first requests that wait with these answers."""
        for at in range(0, len(answers), ANSWER_BYTES):
            settle = self._settle_in_order.popleft()
            try:
                signer = signer_of(answers[at : at + ANSWER_BYTES])
            except ForetellError as refusal:
                settle(refusal)
            else:
                settle(signer)

    async def _watch_deadlines(self) -> None:
        """Refuse late requests, and kill a process that hangs, so that it is started again."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.limits.check_every_s)
            self._waiting.refuse_late(loop.time() - self.limits.recover_deadline_s)
            if self._process is not None and self._is_overdue(loop.time()):
                log.warning("signer recovery does not answer and is killed")
                kill_process(self._process)

    def _is_overdue(self, now_s: float) -> bool:
        first = self._waiting.first
        return first is not None and now_s - first.sent_at_s > self.limits.answer_deadline_s

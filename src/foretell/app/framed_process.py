"""The other side of a framed child: a process that serves the messages of one inherited socket.

It ends when the other end of the socket closes, or when its work fails.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

import structlog
import uvloop
from typing_extensions import override

from foretell.app.running import STOP_SIGNALS, LogOptions, report_thread, set_up_logs
from foretell.domain.errors.families import ForetellError
from foretell.engine.protocol.framing import FramedConnection
from foretell.runtime.child_processes import REFUSED_CODE
from foretell.runtime.failures import report_fault
from foretell.runtime.garbage_collection import settle_memory
from foretell.runtime.heaps import share_heaps
from foretell.runtime.threads import let_threads_work

CLOSE_DEADLINE_S: Final = 5.0
ALIVE_EVERY_S: Final = 1.0

log = structlog.get_logger(__name__)


class ServingConnection(FramedConnection):
    """The connection to the parent, and the work that its messages ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    @abstractmethod
    async def run(self) -> None:
        """Work until cancelled."""

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set()

    async def stay_alive(self, sign: bytes) -> None:
        """Give signs of life, also while the work waits for something, until cancelled."""
        while True:
            await asyncio.sleep(ALIVE_EVERY_S)
            self.send(sign)


async def serve(
    connect: Callable[[], ServingConnection],
    inherited: socket.socket,
    lasting: tuple[type[ForetellError], ...],
) -> int:
    """Work until the connection or the work ends; return the exit code of the process."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_fault)
    _, connection = await loop.create_connection(connect, sock=inherited)
    running = asyncio.create_task(connection.run())
    ended = asyncio.create_task(connection.ended.wait())
    await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
    loop.call_later(CLOSE_DEADLINE_S, os._exit, 1)
    running.cancel()
    ended.cancel()
    (failure, _) = await asyncio.gather(running, ended, return_exceptions=True)
    return _exit_code(failure, lasting)


def _exit_code(failure: BaseException | None, lasting: tuple[type[ForetellError], ...]) -> int:
    """Return the exit code after a failure: one of its own if every other process would refuse too."""
    while isinstance(failure, ExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, lasting):
        log.error("process cannot work", cause=str(failure))
        return REFUSED_CODE
    if isinstance(failure, Exception):
        log.error("process failed", exc_info=failure)
        return 1
    return 0


def run_framed(
    connect: Callable[[], ServingConnection], *, lasting: tuple[type[ForetellError], ...] = ()
) -> None:
    """Serve the socket whose number is the first argument, and exit; `lasting` failures are not tried again.

    The other arguments say how to log.
    """
    for number in STOP_SIGNALS:  # sent to all processes of a service, they are the parent's to obey
        signal.signal(number, signal.SIG_IGN)
    threading.excepthook = report_thread
    set_up_logs(LogOptions.parse(sys.argv[2:]))
    share_heaps()
    settle_memory()
    let_threads_work()
    inherited = socket.socket(fileno=int(sys.argv[1]))
    sys.exit(uvloop.run(serve(connect, inherited, lasting)))

"""The end of a framed process, whichever of its threads still works."""

import socket
import subprocess
import sys
from typing import Final

TIMEOUT_S: Final = 60.0
PROGRAM: Final = """
import asyncio
import threading
import time

from foretell.app.framed_process import ServingConnection, run_framed


def return_a_result(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        time.sleep(0.001)
    loop.call_soon_threadsafe(print)


class Connection(ServingConnection):
    def take(self, message: bytes) -> None:
        pass

    async def run(self) -> None:
        threading.Thread(target=return_a_result, args=[asyncio.get_running_loop()]).start()
        await asyncio.Event().wait()


run_framed(Connection)
"""
"""A process with a thread that returns its result when nobody waits for it, as a driver's of SQLite may."""


def test_a_thread_that_outlives_its_loop_is_no_traceback() -> None:
    """The children of an installation that was killed wrote four."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", PROGRAM, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE) as it:
        theirs.close()
        ours.shutdown(socket.SHUT_RDWR)
        _, errors = it.communicate(timeout=TIMEOUT_S)
    assert errors == b""
    assert it.returncode == 0

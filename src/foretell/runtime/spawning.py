"""The start of a process without a copy of the one that starts it.

uvloop starts a process by a fork, which copies the tables of all memory of this process: it takes the longer, the more
an engine holds, and the event loop waits for it. Python's `subprocess` does not copy them on Linux, where processes are
started by it here. asyncio's classes for its own loops do the rest: the streams of the pipes, and signals.
"""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
from asyncio.base_subprocess import BaseSubprocessTransport
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from typing import Any, Final

from typing_extensions import override

STREAM_BYTES: Final = 64 * 1024
"""Which a stream buffers of what the process writes; the default of asyncio."""
_STREAMS: Final = ("stdin", "stdout", "stderr")


async def spawn(*command: str, **options: Any) -> Process:
    """Start a program like `asyncio.create_subprocess_exec`, with options of `subprocess.Popen`."""
    if not _ends_are_seen():
        return await asyncio.create_subprocess_exec(*command, **options)
    loop = asyncio.get_running_loop()
    protocol = SubprocessStreamProtocol(limit=STREAM_BYTES, loop=loop)
    connected: asyncio.Future[None] = loop.create_future()
    transport = _Transport(
        loop,
        protocol,
        command,
        shell=False,
        stdin=options.pop("stdin", None),
        stdout=options.pop("stdout", None),
        stderr=options.pop("stderr", None),
        bufsize=0,
        waiter=connected,
        **options,
    )
    try:
        await connected
    except BaseException:
        transport.close()  # which kills it; its end is still seen
        raise
    return Process(transport, protocol, loop)


def _ends_are_seen() -> bool:
    """Return whether the system has descriptors of processes."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except AttributeError:
        return False
    except OSError as error:
        return error.errno not in {errno.ENOSYS, errno.EPERM}
    return True


class _Transport(BaseSubprocessTransport):
    """A process that Python's `subprocess` starts; its end is seen at a descriptor of it.

    Its pipes are pairs of sockets, as uvloop's own: the loop takes the descriptor of a socket over, and closes that of a
    file beside the file itself, when another file may have its number.
    """

    @override
    def _start(
        self,
        args: Any,
        shell: bool,
        stdin: Any,
        stdout: Any,
        stderr: Any,
        bufsize: int,
        **options: Any,
    ) -> None:
        """Start it, and wait for its end; after an OSError nothing runs, and no file is open."""
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            ends: dict[str, socket.socket] = {}
            streams = dict(zip(_STREAMS, (stdin, stdout, stderr), strict=True))
            for name, stream in streams.items():
                if stream == PIPE:
                    pair = socket.socketpair()
                    ends[name] = ours.enter_context(pair[0])
                    streams[name] = theirs.enter_context(pair[1])
            process = subprocess.Popen(args, bufsize=bufsize, **streams, **options)  # noqa: S603 - a program of ours, or one that an operator chose
            self._proc = self._process = process
            self._ended = asyncio.Event()
            try:
                self._descriptor = os.pidfd_open(process.pid)
                ours.callback(os.close, self._descriptor)
                self._loop.add_reader(self._descriptor, self._note_end)
            except BaseException:
                process.kill()
                process.wait()
                raise
            for name, end in ends.items():
                setattr(process, name, end)
            ours.pop_all()

    def _note_end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._process_exited(self._process.wait())
        self._ended.set()

    @override
    async def _wait(self) -> int:
        """Return the exit code; asyncio's own would wait until the pipes are closed, too, which others may have."""
        await self._ended.wait()
        return self._process.returncode

    @override
    def send_signal(self, signal: int) -> None:
        """Send a signal, unless the process has ended: another one may have its number."""
        if self._process.poll() is not None:
            raise ProcessLookupError
        self._process.send_signal(signal)

    @override
    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    @override
    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

"""The start of a process without a copy of the one that starts it.

uvloop starts a process by a fork, which copies the tables of all memory of this process: it takes the longer, the more
an engine holds, and the event loop waits for it. Python's `subprocess` does not copy them on Linux, where processes are
started by it here. asyncio's classes for its own loops do the rest: the streams of the pipes, and signals.
"""

import asyncio
import os
import subprocess
from asyncio.base_subprocess import BaseSubprocessTransport
from asyncio.subprocess import Process, SubprocessStreamProtocol
from functools import cache
from typing import Any, Final

from typing_extensions import override

_STREAM_BYTES: Final = 64 * 1024
"""Which a stream buffers of what the process writes; the default of asyncio."""


async def spawn(*command: str, **options: Any) -> Process:
    """Start a program like `asyncio.create_subprocess_exec`, whose options it has."""
    if not _ends_are_seen():
        return await asyncio.create_subprocess_exec(*command, **options)
    loop = asyncio.get_running_loop()
    protocol = SubprocessStreamProtocol(limit=_STREAM_BYTES, loop=loop)
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
    await connected
    return Process(transport, protocol, loop)


@cache
def _ends_are_seen() -> bool:
    """Return whether the system has descriptors of processes."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class _Transport(BaseSubprocessTransport):
    """A process that Python's `subprocess` starts; its end is seen at a descriptor of it."""

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
        """Start it, and wait for its end; an OSError means that nothing was started, or is killed."""
        process = subprocess.Popen(  # noqa: S603 - a program of ours, or one that an operator chose
            args, stdin=stdin, stdout=stdout, stderr=stderr, bufsize=bufsize, **options
        )
        self._proc = self._process = process
        self._ended = asyncio.Event()
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except OSError:
            process.kill()
            process.wait()
            raise
        self._loop.add_reader(self._descriptor, self._note_end)

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

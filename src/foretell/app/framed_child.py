"""A child process that is connected by a socket of framed messages, as its supervisor sees it.

The socket is the only thing that it inherits, and it ends when the socket closes.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from typing_extensions import override

from foretell.app.running import LogOptions
from foretell.domain.errors.command import ChildRefused
from foretell.engine.protocol.framing import FramedConnection
from foretell.runtime.child_processes import (
    REFUSAL_CODES,
    STOP_DEADLINE_S,
    end_process,
    kill_process,
    start_process,
)
from foretell.runtime.module_start import START
from foretell.runtime.spawning import spawn

Process = asyncio.subprocess.Process
Message = TypeVar("Message")


class ChildProgram(NamedTuple):
    """The name of a child in the log, the module that it runs with the number of its socket, and how it logs."""

    name: str
    module: str
    logs: LogOptions


class FramedChild(Generic[Message]):
    """The process while it runs, and the connection to it."""

    def __init__(
        self,
        program: ChildProgram,
        decode: Callable[[bytes], Message],
        on_connected: Callable[[], None],
        on_message: Callable[[Message], None],
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._program = program
        self._decode = decode
        self._on_connected = on_connected
        self._on_message = on_message
        self._on_room = on_room
        self._connection: _Connection | None = None
        self.process: Process | None = None

    @property
    def has_room(self) -> bool:
        """Whether there is a process that reads what it is sent."""
        return self._connection is not None and self._connection.has_room

    def send(self, message: bytes) -> None:
        """Send a message; without a process it is lost."""
        if self._connection is not None:
            self._connection.send(message)

    async def start(self) -> None:
        """Start the process."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                starting = spawn(
                    *START,
                    self._program.module,
                    str(theirs.fileno()),
                    *self._program.logs.words,
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
                self.process = await start_process(starting)
            _, self._connection = await loop.create_connection(self._connect, sock=ours)
        except BaseException:
            ours.close()
            raise
        self._on_connected()

    async def wait(self) -> int:
        """Return the exit code when the process has ended, or raise if it refused to run."""
        assert self.process is not None, "it was started"
        code = await self.process.wait()
        if code in REFUSAL_CODES:
            raise ChildRefused(self._program.name, code)
        return code

    async def stop(self) -> None:
        """End the process if it runs."""
        connection, process = self._connection, self.process
        self._connection = self.process = None
        if connection is not None:
            connection.disconnect()
        if process is not None:
            await end_process(process, STOP_DEADLINE_S)

    def kill(self) -> None:
        """Kill a process that hangs, so that its supervisor starts another."""
        if self.process is not None:
            kill_process(self.process)

    def _connect(self) -> "_Connection":
        return _Connection(self._take, self._on_room)

    def _take(self, message: bytes) -> None:
        self._on_message(self._decode(message))


class _Connection(FramedConnection):
    """Our end of the socket; it has room while the process reads."""

    def __init__(self, take: Callable[[bytes], None], on_room: Callable[[], None]) -> None:
        super().__init__()
        self._take = take
        self._on_room = on_room
        self.has_room = True

    @override
    def take(self, message: bytes) -> None:
        self._take(message)

    @override
    def send(self, frame: bytes) -> None:
        """Send a frame at once, so that there is no room as soon as it is not read."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)

    @override
    def pause_writing(self) -> None:
        self.has_room = False

    @override
    def resume_writing(self) -> None:
        self.has_room = True
        self._on_room()

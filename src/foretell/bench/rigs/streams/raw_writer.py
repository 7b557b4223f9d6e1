"""The ceiling of streams: a process that writes one frame to many sockets, and does nothing else."""

import asyncio
import contextlib
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, NamedTuple, cast

import uvloop
from typing_extensions import override

from foretell.domain.errors.command import BenchFailed

START_DEADLINE_S: Final = 300.0
STOP_DEADLINE_S: Final = 10.0


class RawWriter(NamedTuple):
    """A process that writes, its port, and the pipe to it."""

    port: int
    pid: int
    pipe: Connection

    def write(self, frame: bytes, rounds: list[list[int]]) -> None:
        """Have it write a frame to some of its connections, time after time."""
        self.pipe.send((frame, rounds))


@contextlib.contextmanager
def running_raw_writer() -> Iterator[RawWriter]:
    """Give the process until the block ends."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_in_process, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(START_DEADLINE_S):
            raise BenchFailed("the writer of bare sockets did not start")
        assert process.pid is not None
        yield RawWriter(ours.recv(), process.pid, ours)
    finally:
        with contextlib.suppress(OSError):
            ours.send(None)
        process.join(STOP_DEADLINE_S)
        if process.is_alive():
            process.kill()


class _Accepted(asyncio.Protocol):
    """A connection that is only written to."""

    def __init__(self, transports: list[asyncio.Transport]) -> None:
        self._transports = transports

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transports.append(cast("asyncio.Transport", transport))


def _serve_in_process(parent: Connection) -> None:
    uvloop.run(_serve(parent))


async def _serve(parent: Connection) -> None:
    transports: list[asyncio.Transport] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Accepted(transports), "127.0.0.1", 0, backlog=1_000)
    async with server:
        parent.send(server.sockets[0].getsockname()[1])
        while (wanted := await asyncio.to_thread(parent.recv)) is not None:
            frame, rounds = wanted
            for numbers in rounds:
                for number in numbers:
                    transports[number].write(frame)
                await asyncio.sleep(0)  # the loop writes what it holds

"""The rig of the journal's tests: types of fixtures, and a cable to a database that can be cut."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

import sqlalchemy as sa

from foretell.journal.port import Journal
from foretell.runtime.event_loop_thread import LoopThread

SEGMENT_BYTES = 16 * 1024
CHUNK_BYTES = 1024 * 1024
LATE_S = 0.2

Open = Callable[[str], Journal]
"""Opens the journal of a name, also repeatedly."""

Stored = Callable[[], list[bytes]]
"""Returns what is stored of every journal, read from outside."""

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Fault = Callable[["Cable", bytes, Stream, Stream], Awaitable[None]]


async def lose_request(_cable: "Cable", _request: bytes, client: Stream, server: Stream) -> None:
    """Lose a request: the server does not receive it."""
    client[1].close()
    server[1].close()


async def lose_answer(_cable: "Cable", request: bytes, client: Stream, server: Stream) -> None:
    """Lose an answer: the server handles the request, and the client does not learn it."""
    server[1].write(request)
    await server[0].read(CHUNK_BYTES)
    client[1].close()
    server[1].close()


async def delay_request(cable: "Cable", request: bytes, client: Stream, server: Stream) -> None:
    """Close the client's connection, and let the server have the request much later."""
    client[1].close()
    await cable.later.wait()
    server[1].write(request)
    cable.late_answer = await server[0].read(CHUNK_BYTES)
    server[1].close()
    cable.delivered.set()


async def only_read(_cable: "Cable", request: bytes, client: Stream, server: Stream) -> None:
    """Make a startup request ask for a session that takes no writes."""
    asked = request[4:-1] + b"default_transaction_read_only\0on\0\0"
    server[1].write((4 + len(asked)).to_bytes(4, "big") + asked)
    await asyncio.gather(_pump(client[0], server[1]), _pump(server[0], client[1]))


async def be_late(_cable: "Cable", request: bytes, client: Stream, server: Stream) -> None:
    """Delay a request a little, and pass on everything after it."""
    await asyncio.sleep(LATE_S)
    server[1].write(request)
    await asyncio.gather(_pump(client[0], server[1]), _pump(server[0], client[1]))


class Cable:
    """A proxy to a server, in a thread of its own; a fault hits the request with its marker."""

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self._faults: dict[bytes, Fault] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self.later = asyncio.Event()
        self.delivered = asyncio.Event()
        self.late_answer = b""
        self.thread = LoopThread("cable")
        self._port = self.thread.run(self._listen())

    @property
    def url(self) -> str:
        """The URL of the server through the cable."""
        url = self._url.set(host="127.0.0.1", port=self._port, query={})
        return url.render_as_string(hide_password=False)

    def spoil(self, marker: bytes, fault: Fault) -> None:
        """Let a fault hit the next request that contains the marker."""
        self._faults[marker] = fault

    def cut(self) -> None:
        """End every connection and let no new one through."""
        self._is_cut = True
        self.thread.run(self._end_connections())

    def mend(self) -> None:
        """Let new connections through again."""
        self._is_cut = False

    def deliver(self) -> bytes:
        """Send the server the delayed request, and return its answer."""
        self.thread.loop.call_soon_threadsafe(self.later.set)
        self.thread.run(asyncio.wait_for(self.delivered.wait(), 60))
        return self.late_answer

    def close(self) -> None:
        self.thread.run(self._stop_listening())
        self.cut()
        self.thread.close()

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = server
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _stop_listening(self) -> None:
        self._server.close()

    async def _end_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = (reader, writer)
        if self._is_cut:
            writer.transport.abort()
            return
        server = await self._connect()
        self._writers |= {writer, server[1]}
        answers = asyncio.ensure_future(_pump(server[0], writer))
        with contextlib.suppress(OSError):
            while request := await reader.read(CHUNK_BYTES):
                fault = self._fault(request)
                if fault is not None:
                    answers.cancel()
                    await asyncio.wait([answers])
                    await fault(self, request, client, server)
                    break
                server[1].write(request)
        answers.cancel()
        for each in (writer, server[1]):
            each.close()

    async def _connect(self) -> Stream:
        host, port = self._url.query.get("host"), self._url.port or 5432
        if isinstance(host, str):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._url.host, port)

    def _fault(self, request: bytes) -> Fault | None:
        for marker in self._faults:
            if marker in request:
                return self._faults.pop(marker)
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
    writer.close()


@contextlib.contextmanager
def a_cable(url: str) -> Iterator[Cable]:
    """Yield a cable to a server."""
    cable = Cable(url)
    try:
        yield cable
    finally:
        cable.close()

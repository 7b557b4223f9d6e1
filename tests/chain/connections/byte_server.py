"""A server of HTTP whose every byte a test chooses."""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from foretell.chain.rpc import Rpc

BYTES_MAX: Final = 1_000_000
TIMEOUT_S: Final = 60.0
"""No test waits for its end: it only ends one that hangs."""
LARGE: Final = "0x" + bytes(range(256)).hex() * 1_000
HUGE: Final = "0x" + bytes(range(256)).hex() * 5_000
"""So large that most of it is received beside the parser."""
HUGE_BYTES_MAX: Final = 3_000_000


class Server:
    """A server that answers each request with the next of its answers, given in parts, and keeps the requests."""

    def __init__(self, answers: Sequence[Sequence[bytes]], *, closes: bool = False) -> None:
        self.answers = list(answers)
        self.closes = closes
        self.requests: list[bytes] = []
        self.connections = 0
        self.tasks: list[Any] = []
        self.asked = asyncio.Semaphore(0)
        self.ended = asyncio.Semaphore(0)
        self.released = asyncio.Event()
        self.pause_s = 0.01
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                self.asked.release()
                request_id = int(self.requests[-1].split(b'"id":')[1].split(b",")[0])
                for part in self.answers.pop(0):
                    if part == WAIT:
                        await self.released.wait()
                    elif part == RESET:
                        writer.transport.abort()
                    elif part == END:
                        writer.close()
                    else:
                        writer.write(part.replace(b"%d" % OWN, b"%7d" % request_id))
                    await writer.drain()
                    await asyncio.sleep(self.pause_s)
                if self.closes:
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.ended.release()


WAIT: Final = b""
"""A part before which the server waits until it is released."""
OWN: Final = 9_999_999
"""The id of an answer in whose place the server writes that of the request."""
RESET: Final = b"reset"
"""A part in whose place the server resets the connection."""
END: Final = b"end"
"""A part in whose place the server closes the connection."""


@contextlib.asynccontextmanager
async def serving(
    *answers: Sequence[bytes],
    closes: bool = False,
    timeout_s: float = TIMEOUT_S,
    bytes_max: int = BYTES_MAX,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[Server, Rpc]]:
    server = Server(answers, closes=closes)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        scheme = "http" if tls is None else "https"
        server.url = f"{scheme}://us%C3%A9r:pa%20ss@127.0.0.1:{port}/v3/a%20b?x=1"
        async with Rpc(server.url, timeout_s=timeout_s, answer_bytes_max=bytes_max) as rpc:
            try:
                yield server, rpc
            finally:
                await rpc.close()
                server.released.set()
                await asyncio.gather(*server.tasks)


def body(request_id: int, result: str = LARGE) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def answer(request_id: int, result: str = "0x1") -> bytes:
    return plain(body(request_id, result))


def plain(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def pieces(sent: bytes, size: int) -> list[bytes]:
    return [sent[at : at + size] for at in range(0, len(sent), size)]


def chunked(*parts: bytes, headers: str = "") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n%s\r\n" % headers.encode() + body


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return a certificate of the loopback address, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=node"
    names = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return certificate, key


def certified(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the side of a server that has this certificate."""
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(certificate, key)
    return own

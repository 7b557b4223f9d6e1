"""A proxy in front of a real node that falsifies, delays or loses its answers.

Faults are set by method and used in order; other calls pass unchanged. A batch is split, so that a
fault hits the intended call. A node with automining may mine late on a busy machine, so the proxy
answers a broadcast only when it is mined.
"""

import asyncio
import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import httpx
import msgspec
from tests.rigs.chain_snapshots import wait_until_mined

from foretell.chain.rpc import Rpc

Request = dict[str, Any]
Answer = dict[str, Any]
Forward = Callable[[], Awaitable[Answer]]
Fault = Callable[[Request, Forward], Awaitable[Answer | None]]

HEAD_BYTES_MAX: Final = 64 * 1024
ANSWERED_WITHIN_S: Final = 300.0
BROADCAST: Final = "eth_sendRawTransaction"


async def lose_request(_request: Request, _forward: Forward) -> Answer | None:
    """The node receives no request, and the caller no answer."""
    return None


async def lose_answer(_request: Request, forward: Forward) -> Answer | None:
    """The node executes the call, and the caller receives no answer."""
    await forward()
    return None


def refuse(message: str, code: int = -32000) -> Fault:
    """The node refuses the call."""

    async def fault(request: Request, _forward: Forward) -> Answer | None:
        return _refusal(request, message, code)

    return fault


def refuse_after(message: str, code: int = -32000) -> Fault:
    """The node executes the call, and answers with a refusal."""

    async def fault(request: Request, forward: Forward) -> Answer | None:
        await forward()
        return _refusal(request, message, code)

    return fault


def change(changed: Callable[[Any], Any]) -> Fault:
    """The node answers with another result."""

    async def fault(_request: Request, forward: Forward) -> Answer | None:
        answer = await forward()
        return answer | {"result": changed(answer["result"])}

    return fault


async def honest(_request: Request, forward: Forward) -> Answer | None:
    """No fault, for a call before the intended one."""
    return await forward()


def _refusal(request: Request, message: str, code: int) -> Answer:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


class FaultProxy:
    """One proxy in front of one node."""

    def __init__(self, node: Rpc, node_url: str, client: httpx.AsyncClient) -> None:
        self._node = node
        self._node_url = node_url
        self._client = client
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._lasting: dict[str, Fault] = {}
        self.url = ""
        self.asked: Counter[str] = Counter()

    def fail(self, method: str, *faults: Fault) -> None:
        """Fail the next calls of a method, with one fault each."""
        self._faults[method].extend(faults)

    def fail_always(self, method: str, fault: Fault) -> None:
        """Fail every call of a method until `heal`."""
        self._lasting[method] = fault

    def heal(self) -> None:
        self._faults.clear()
        self._lasting.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                body = await read_body(reader)
                answer = await self._answer(msgspec.json.decode(body))
                if answer is None:
                    break
                writer.write(http_answer(msgspec.json.encode(answer)))
                await writer.drain()
        writer.close()

    async def _answer(self, body: Any) -> Any:
        if isinstance(body, dict):
            return await self._one(body)
        answers = [await self._one(request) for request in body]
        return None if None in answers else answers

    async def _one(self, request: Request) -> Answer | None:
        method = request["method"]
        self.asked[method] += 1

        async def forward() -> Answer:
            response = await self._client.post(self._node_url, json=request)
            answer: Answer = response.json()
            if method == BROADCAST:
                await wait_until_mined(self._node)
            return answer

        queue = self._faults[method]
        fault = queue.popleft() if queue else self._lasting.get(method, honest)
        return await fault(request, forward)


@contextlib.asynccontextmanager
async def proxying(node_url: str) -> AsyncIterator[FaultProxy]:
    """Yield a proxy in front of this node."""
    async with (
        httpx.AsyncClient(trust_env=False, verify=False, timeout=ANSWERED_WITHIN_S) as client,
        Rpc(node_url) as node,
    ):
        proxy = FaultProxy(node, node_url, client)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
        async with server:
            port = server.sockets[0].getsockname()[1]
            proxy.url = f"http://127.0.0.1:{port}"
            yield proxy


async def read_body(reader: asyncio.StreamReader) -> bytes:
    """Return the body of the next HTTP request."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    return await reader.readexactly(lengths[0])


def http_answer(body: bytes, status: str = "200 OK") -> bytes:
    """Return an HTTP response with this body."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body

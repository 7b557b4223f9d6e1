"""A node that serves a generated chain from prepared bytes, in a process of its own.

It answers JSON-RPC over HTTP on the loopback interface. On request it keeps the bodies that it sends, so that a
benchmark can decode the same bytes again. It ends with the process that started it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from foretell.bench.rigs.index.chain import ChainPlan, EncodedBlock, GeneratedChain
from foretell.bench.rigs.world import deployment_without_chain
from foretell.domain.errors.command import BenchFailed
from foretell.domain.values.hexadecimal import Address, keccak256, parse_bytes32
from foretell.domain.values.tokens import collection_id, token_id

BLOCKS_KEPT_MAX: Final = 20_000
BODIES_KEPT_MAX: Final = 1_000
START_S: Final = 60.0
PREPARE_S: Final = 600.0
NO_METHOD: Final = -32601


class NodeProcess:
    """The node as its starter sees it."""

    def __init__(self, url: str, pipe: Connection) -> None:
        self.url = url
        self._pipe = pipe

    def prepare(self, first: int, last: int) -> int:
        """Make the bytes of these blocks, and return the number of their logs."""
        return int(self._ask("prepare", first, last))

    def record(self) -> None:
        """Begin to keep the bodies that are sent, without earlier ones."""
        self._ask("record")

    def recorded(self) -> Sequence[bytes]:
        """Return the bodies since then, and keep no more."""
        return list(self._ask("recorded"))

    def _ask(self, name: str, *arguments: int) -> Any:
        self._pipe.send((name, *arguments))
        if not self._pipe.poll(PREPARE_S):
            raise BenchFailed(f"the node did not {name} within {PREPARE_S:.0f} s")
        return self._pipe.recv()


@contextlib.contextmanager
def generated_node(plan: ChainPlan) -> Iterator[NodeProcess]:
    """Give a running node of a chain; it ends with the block."""
    own, other = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(plan, other), daemon=True)
    process.start()
    other.close()
    try:
        if not own.poll(START_S):
            raise BenchFailed(f"the node did not start within {START_S:.0f} s")
        yield NodeProcess(own.recv(), own)
    finally:
        process.terminate()
        process.join()
        own.close()


def _serve(plan: ChainPlan, pipe: Connection) -> None:
    asyncio.run(_Node(plan, pipe).run())


class _Node:
    """The node in its process: HTTP from clients, and a pipe from the starter."""

    def __init__(self, plan: ChainPlan, pipe: Connection) -> None:
        self._plan, self._pipe = plan, pipe
        self._chain = GeneratedChain(plan, deployment_without_chain())
        self._blocks: dict[int, EncodedBlock] = {}
        self._bodies: list[bytes] | None = None
        self._ended = asyncio.Event()
        self._methods: dict[str, Callable[[list[Any]], Iterator[bytes]]] = {
            "eth_getLogs": self._logs,
            "eth_getBlockByNumber": lambda params: iter((self._at(params[0]).header,)),
            "eth_getBlockReceipts": lambda params: _listed([self._at(params[0]).receipts]),
            "eth_call": lambda params: iter((msgspec.json.encode(_called(params[0]["data"])),)),
        }

    async def run(self) -> None:
        """Serve until the starter has closed its end of the pipe."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._asked)
        self._pipe.send(f"http://127.0.0.1:{port}")
        async with server:
            await self._ended.wait()

    def _asked(self) -> None:
        try:
            name, *arguments = self._pipe.recv()
        except EOFError:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._ended.set()
            return
        if name == "prepare":
            numbers = range(arguments[0], arguments[1] + 1)
            for number in numbers:
                self._block(number)
            self._pipe.send(sum(map(self._chain.logs_in, numbers)))
        elif name == "record":
            self._bodies = []
            self._pipe.send(None)
        else:
            bodies, self._bodies = self._bodies, None
            self._pipe.send(bodies)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = self._answered(await reader.readexactly(_length(head)))
                if self._bodies is not None and len(self._bodies) < BODIES_KEPT_MAX:
                    self._bodies.append(body)
                writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode())
                writer.write(body)
                await writer.drain()
        writer.close()

    def _answered(self, body: bytes) -> bytes:
        """Return the answer, joined from prepared bytes: the reader is measured, and waits for it."""
        request = msgspec.json.decode(body)
        if isinstance(request, list):
            return b"".join(_listed([b"".join(self._answer(each)) for each in request]))
        return b"".join(self._answer(request))

    def _answer(self, request: dict[str, Any]) -> Iterator[bytes]:
        yield b'{"jsonrpc":"2.0","id":%d,' % request["id"]
        method = self._methods.get(request["method"])
        if method is None:
            yield b'"error":{"code":%d,"message":"no such method"}}' % NO_METHOD
            return
        yield b'"result":'
        yield from method(request["params"])
        yield b"}"

    def _logs(self, params: list[Any]) -> Iterator[bytes]:
        (query,) = params
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        parts = [self._block(number).logs for number in range(first, last + 1)]
        return _listed([part for part in parts if part])

    def _at(self, tag: str) -> EncodedBlock:
        return self._block(self._plan.head if tag == "latest" else int(tag, 16))

    def _block(self, number: int) -> EncodedBlock:
        block = self._blocks.get(number)
        if block is None:
            block = self._chain.block(number)
            while len(self._blocks) >= BLOCKS_KEPT_MAX:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = block
        return block


def _listed(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a JSON list of these parts."""
    yield b"["
    for place, part in enumerate(parts):
        if place:
            yield b","
        yield part
    yield b"]"


def _length(head: bytes) -> int:
    """Return the length of a request's body."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _called(calldata: str) -> str:
    """Return the token ids of the Conditional Tokens contract; it has no other function here."""
    selector, words = calldata[:10], calldata[10:]
    if selector == _COLLECTION:
        return collection_id(parse_bytes32("0x" + words[64:128]), int(words[128:192], 16))
    assert selector == _POSITION
    collateral, collection = Address("0x" + words[24:64]), parse_bytes32("0x" + words[64:128])
    return f"0x{token_id(collateral, collection):064x}"


def _selector(signature: str) -> str:
    return "0x" + keccak256(signature.encode())[:4].hex()


_COLLECTION: Final = _selector("getCollectionId(bytes32,bytes32,uint256)")
_POSITION: Final = _selector("getPositionId(address,bytes32)")

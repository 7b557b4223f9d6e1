"""A load balancer: each connection to one address may lead to a node of another chain."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec
import pytest

from foretell.chain.connections.node_connections import CONNECTIONS_MAX
from foretell.chain.rpc import CHAIN_ID, Rpc
from foretell.domain.errors.chain import ChainUnavailable, WrongChain

pytestmark = pytest.mark.anyio

OWN: Final = 80002
FOREIGN: Final = 137
RAW: Final = "eth_sendRawTransaction"


class Balancer:
    """A server whose connections have the chains of a list, the last for all further ones."""

    def __init__(self, chains: Sequence[int], *, closes: bool, takes_batches: bool) -> None:
        self.chains = list(chains)
        self.closes = closes
        self.takes_batches = takes_batches
        self.connections = 0
        self.asked: Counter[tuple[int, str]] = Counter()
        self.held = asyncio.Event()
        self.released = asyncio.Event()
        self.late = asyncio.Event()
        self.late_released = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chain = self.chains[min(self.connections, len(self.chains) - 1)]
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                request = msgspec.json.decode(await reader.readexactly(size))
                body = msgspec.json.encode(await self.answer(chain, request))
                closing = "connection: close\r\n" if self.closes else ""
                writer.write(
                    f"HTTP/1.1 200 OK\r\n{closing}content-length: {len(body)}\r\n\r\n".encode()
                )
                writer.write(body)
                await writer.drain()
                if self.closes:
                    break
        writer.close()

    async def answer(self, chain: int, request: Any) -> Any:
        if isinstance(request, list):
            if not self.takes_batches:
                return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
            return [await self.answer(chain, call) for call in request]
        method = request["method"]
        self.asked[chain, method] += 1
        if method == "eth_hold":
            self.held.set()
            await self.released.wait()
        if method == "eth_late":
            self.late.set()
            await self.late_released.wait()
        return {"jsonrpc": "2.0", "id": request["id"], "result": hex(chain)}


@contextlib.asynccontextmanager
async def balanced(
    *chains: int, closes: bool = False, takes_batches: bool = True
) -> AsyncIterator[tuple[Balancer, Rpc]]:
    balancer = Balancer(chains, closes=closes, takes_batches=takes_batches)
    listening = await asyncio.start_server(balancer.serve, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        async with Rpc(f"http://127.0.0.1:{port}", OWN) as rpc:
            yield balancer, rpc
            balancer.released.set()


@contextlib.asynccontextmanager
async def first_connection_used(balancer: Balancer, rpc: Rpc) -> AsyncIterator[None]:
    """Keep the first connection, which is checked, in use by a request."""
    await rpc.send("eth_x")
    holding = asyncio.create_task(rpc.send("eth_hold"))
    await balancer.held.wait()
    try:
        yield
    finally:
        balancer.released.set()
        assert await holding == hex(OWN)


@pytest.mark.parametrize("takes_batches", [True, False])
async def test_a_second_connection_to_another_chain_is_refused_while_the_first_is_good(
    takes_batches: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async with balanced(OWN, FOREIGN, takes_batches=takes_batches) as (balancer, rpc):
        async with first_connection_used(balancer, rpc):
            with pytest.raises(WrongChain) as refusal:
                await rpc.send("eth_x")
        assert refusal.value.details == {"method": CHAIN_ID, "seen": FOREIGN, "wanted": OWN}


async def test_the_first_connection_does_not_answer_for_the_second_when_it_is_idle_again() -> None:
    async with balanced(OWN, FOREIGN) as (balancer, rpc):
        async with first_connection_used(balancer, rpc):
            second = asyncio.create_task(rpc.send("eth_late"))
            asked = asyncio.create_task(balancer.late.wait())
            await asyncio.wait({second, asked}, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
        balancer.late_released.set()
        with pytest.raises(WrongChain):
            await second


async def test_a_broadcast_is_not_sent_to_another_chain_and_once_to_the_own() -> None:
    async with balanced(OWN, FOREIGN, OWN) as (balancer, rpc):
        async with first_connection_used(balancer, rpc):
            with pytest.raises(WrongChain):
                await rpc.send(RAW, "0x00")
            assert await rpc.send(RAW, "0x00") == hex(OWN)
        assert balancer.asked[FOREIGN, RAW] == 0
        assert balancer.asked[OWN, RAW] == 1


async def test_a_proxy_that_closes_each_connection_is_checked_in_the_same_response() -> None:
    async with balanced(OWN, closes=True) as (balancer, rpc):
        calls = [rpc.call("eth_x") for _ in range(CONNECTIONS_MAX)]
        assert set(await asyncio.gather(*calls)) == {hex(OWN)}
        assert await rpc.batch([("eth_x", []), ("eth_y", [])]) == [hex(OWN)] * 2
        assert await rpc.send(RAW, "0x00") == hex(OWN)
        assert balancer.asked[OWN, RAW] == 1
    async with balanced(OWN, FOREIGN, closes=True) as (_, rpc):
        with pytest.raises(WrongChain):
            await rpc.send("eth_x")


async def test_a_node_that_refuses_batches_is_checked_before_a_request() -> None:
    async with balanced(OWN, takes_batches=False) as (balancer, rpc):
        calls = [rpc.call("eth_x") for _ in range(CONNECTIONS_MAX)]
        assert set(await asyncio.gather(*calls)) == {hex(OWN)}
        assert balancer.connections <= CONNECTIONS_MAX
    async with balanced(OWN, closes=True, takes_batches=False) as (_, rpc):
        with pytest.raises(ChainUnavailable, match="does not name the chain"):
            await rpc.send("eth_x")

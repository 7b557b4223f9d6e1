import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import msgspec
import pytest
from tests.rigs.fault_proxy import FaultProxy, change, lose_answer, lose_request, refuse
from tests.rigs.sandbox import Sandbox

from foretell.bench.rigs.ports import free_port
from foretell.chain.rpc import CALLS_PER_BATCH_MAX, READ_ATTEMPTS_MAX, Rpc
from foretell.chain.rpc_types import RawBlock, RawLog
from foretell.domain.errors.chain import ChainUnavailable, ExecutionReverted, RpcRefused

pytestmark = pytest.mark.anyio

RECURSION_LIMIT: Final = 1_000


@contextlib.asynccontextmanager
async def answering(answer: bytes, status: str = "200 OK") -> AsyncIterator[Rpc]:
    """Yield a connection to a server that answers every request with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"}")
                head = f"HTTP/1.1 {status}\r\ncontent-length: {len(answer)}\r\n\r\n"
                writer.write(head.encode() + answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with Rpc(f"http://127.0.0.1:{port}", timeout_s=5) as rpc:
            yield rpc


async def test_a_read_is_repeated_and_a_broadcast_is_not(
    faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    proxy.fail("eth_chainId", *[lose_request] * (READ_ATTEMPTS_MAX - 1))
    assert await faulty_rpc.call("eth_chainId") == hex(80002)
    assert proxy.asked["eth_chainId"] == READ_ATTEMPTS_MAX
    proxy.fail("eth_blockNumber", lose_answer)
    with pytest.raises(ChainUnavailable, match="eth_blockNumber"):
        await faulty_rpc.send("eth_blockNumber")
    assert proxy.asked["eth_blockNumber"] == 1


async def test_a_read_that_is_never_answered_is_given_up(
    faulty_rpc: Rpc, proxy: FaultProxy
) -> None:
    proxy.fail_always("eth_chainId", lose_request)
    with pytest.raises(ChainUnavailable) as refusal:
        await faulty_rpc.call("eth_chainId")
    assert not refusal.value.definite
    assert proxy.asked["eth_chainId"] == READ_ATTEMPTS_MAX


async def test_a_batch_larger_than_its_limit_keeps_its_order(sandbox: Sandbox) -> None:
    count = CALLS_PER_BATCH_MAX + 5
    calls = [("web3_sha3", [f"0x{number:04x}"]) for number in range(count)]
    answers = await sandbox.rpc.batch(calls)
    assert len(set(answers)) == count
    assert answers[-1] == await sandbox.rpc.call("web3_sha3", f"0x{count - 1:04x}")


async def test_one_refusal_fails_its_batch(faulty_rpc: Rpc, proxy: FaultProxy) -> None:
    proxy.fail("eth_chainId", refuse("not today"))
    with pytest.raises(RpcRefused, match="not today"):
        await faulty_rpc.batch([("eth_blockNumber", []), ("eth_chainId", [])])


@pytest.mark.parametrize("result", [b'[{"address": 5}]', b'"logs"', b"[[]]"])
async def test_a_result_of_another_shape_than_asked_for_is_unavailable(result: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":%d,"result":%s}'
    async with answering(body % (1, result)) as rpc:
        with pytest.raises(ChainUnavailable, match="another shape"):
            await rpc.call_as(list[RawLog], "eth_getLogs")
    async with answering(b"[" + body % (1, result) + b"]") as rpc:
        with pytest.raises(ChainUnavailable, match="another shape"):
            await rpc.batch_as(list[RawLog], [("eth_getLogs", [])])


async def test_a_result_is_decoded_as_the_type_that_is_asked_for(sandbox: Sandbox) -> None:
    start = hex(sandbox.deployment.start_block)
    query = {"fromBlock": start, "toBlock": "latest"}
    logs = await sandbox.rpc.call_as(list[RawLog], "eth_getLogs", query)
    assert logs
    plain = await sandbox.rpc.call("eth_getLogs", query)
    assert logs == msgspec.convert(plain, list[RawLog])
    assert await sandbox.rpc.batch_as(
        RawBlock, [("eth_getBlockByNumber", ["0xffffffff", False])]
    ) == [None]


@pytest.mark.parametrize(
    ("message", "code", "kind"),
    [
        ("execution reverted", 3, ExecutionReverted),
        ("VM Exception while processing: revert", -32000, ExecutionReverted),
        ("whatever", 3, ExecutionReverted),
        ("VM execution error", -32015, ExecutionReverted),
        ("OutOfGas", -32000, ExecutionReverted),
        ("invalid opcode: INVALID", -32000, ExecutionReverted),
        ("stack limit reached 1024 (1023)", -32000, ExecutionReverted),
        ("return data out of bounds", -32000, ExecutionReverted),
        ("gas uint64 overflow", -32000, ExecutionReverted),
        ("nonce too low", -32000, RpcRefused),
    ],
)
async def test_a_refusal_by_a_revert_has_its_own_class(
    faulty_rpc: Rpc, proxy: FaultProxy, message: str, code: int, kind: type[RpcRefused]
) -> None:
    proxy.fail("eth_call", refuse(message, code))
    with pytest.raises(RpcRefused) as refusal:
        await faulty_rpc.call("eth_call", {}, "latest")
    assert type(refusal.value) is kind
    assert (refusal.value.rpc_message, refusal.value.rpc_code) == (message, code)


@pytest.mark.parametrize("code", [3, -32005])
async def test_no_address_or_key_of_a_node_is_in_a_refusal(
    faulty_rpc: Rpc, proxy: FaultProxy, code: int
) -> None:
    key = "9aa3d95b3bc440fa88ea12eaa4456161"
    said = f"limit of project {key} at https://node.example/v3/{key}\n\0" + "." * 1_000
    proxy.fail("eth_call", refuse(said, code))
    with pytest.raises(RpcRefused, match=r"limit of project \(token\) at \(address\)") as refusal:
        await faulty_rpc.call("eth_call", {}, "latest")
    for text in (refusal.value.message, refusal.value.rpc_message, str(refusal.value)):
        assert key not in text
        assert "node.example" not in text
        assert text.isprintable()
        assert len(text) < 600


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"<html>", "200 OK"),
        (b"{}", "200 OK"),
        (b'{"id": 99, "result": "0x1"}', "200 OK"),
        (b'{"id": 1, "result"', "200 OK"),
        (b'{"id": 1, "result": "0x1"}', "502 Bad Gateway"),
        (b'{"id": 1, "error": {"code": -32005, "message": "limit"}}', "429 Too Many Requests"),
    ],
)
async def test_an_unusable_answer_counts_as_no_answer(answer: bytes, status: str) -> None:
    async with answering(answer, status) as rpc:
        with pytest.raises(ChainUnavailable):
            await rpc.send("eth_chainId")


@pytest.fixture
def usual_recursion_limit() -> Iterator[None]:
    """The limit of a process that serves; a library of the tests raises it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION_LIMIT)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_recursion_limit")
async def test_an_answer_that_is_nested_too_deeply_counts_as_no_answer() -> None:
    answer = b'{"id": 1, "result": ' + b"[" * RECURSION_LIMIT + b"]" * RECURSION_LIMIT + b"}"
    async with answering(answer) as rpc:
        with pytest.raises(ChainUnavailable):
            await rpc.send("eth_chainId")


@pytest.mark.parametrize("answer", [b"{}", b"[]", b'[{"id": 9, "result": 1}]', b"nothing"])
async def test_an_unusable_batch_counts_as_no_answer(answer: bytes) -> None:
    async with answering(answer) as rpc:
        with pytest.raises(ChainUnavailable, match="batch"):
            await rpc.batch([("eth_chainId", [])])


async def test_an_answer_that_is_too_large_is_refused() -> None:
    async with answering(b" " * (64 * 1024 * 1024 + 1)) as rpc:
        with pytest.raises(ChainUnavailable, match="more than"):
            await rpc.send("eth_chainId")


async def test_a_port_without_a_server_counts_as_no_answer() -> None:
    async with Rpc(f"http://127.0.0.1:{free_port()}") as rpc:
        with pytest.raises(ChainUnavailable) as refusal:
            await rpc.send("eth_chainId")
    assert "127.0.0.1" not in refusal.value.message


async def test_a_result_is_passed_on_as_it_is(faulty_rpc: Rpc, proxy: FaultProxy) -> None:
    results: list[Callable[[object], object]] = [lambda _: None, lambda _: {"a": [1]}]
    proxy.fail("eth_chainId", *map(change, results))
    assert await faulty_rpc.call("eth_chainId") is None
    assert await faulty_rpc.call("eth_chainId") == {"a": [1]}

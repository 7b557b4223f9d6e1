"""A node that lies: a proxy in front of a real one that loses, delays, damages and falsifies answers.

Every choice comes from one seeded generator. A lie lasts for a few requests, as that of a bad replica behind a
load balancer does. Unlike `tests/rigs/fault_proxy.py`, which fails chosen calls, it lies at random, and it
lies about a batch as a whole.

A stale replica answers everything as of an earlier block. A replica without an index of transactions
knows neither receipts nor blocks of transactions, though its blocks are new. A node of another chain takes over
the port: all connections end, and it answers what is sent then, until the former node is back in the same way.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import httpx
import msgspec
from tests.rigs.fault_proxy import HEAD_BYTES_MAX, http_answer, read_body

from foretell.reconciliation.transaction_logs import READINGS

Call = dict[str, Any]

BROADCAST: Final = "eth_sendRawTransaction"
DELAY_S_MAX: Final = 0.02
LASTS: Final = (0, 0, 0, 0, 3, 12, 60)
"""For how many further requests a lie lasts."""
LASTS_OF_REPLICA: Final = (0, 12, 60, 200)
"""The same for a bad replica, which answers well-formed and so is used for long."""
LASTS_OF_SILENCE: Final = (0, 0, 0, 2)
"""The same for a silent node: each of its requests costs the caller its deadline."""
STALE_BLOCKS_MAX: Final = 3
"""The dev chain keeps the states of four blocks."""
SILENT_S_MAX: Final = 10.0
"""The caller closes the connection before, at its own deadline."""
HTML: Final = b"<html><body><h1>Sorry</h1></body></html>"
REFUSALS: Final = ("nonce too low", "already known", "replacement transaction underpriced")
RATE_LIMITED: Final = (-32005, "daily request count exceeded, request rate limited")
PLACE_OF_BLOCK: Final = {
    "eth_call": 1,
    "eth_estimateGas": 1,
    "eth_getBalance": 1,
    "eth_getBlockByNumber": 0,
    "eth_getCode": 1,
    "eth_getTransactionCount": 1,
}
"""The parameter that names a block."""
COUNTED: Final = frozenset(f"0x{topic:064x}" for _, topic in READINGS)
"""The first topics of logs that change a figure."""
NAMES_OF_HEAD: Final = ("latest", "pending")


class Request(NamedTuple):
    """The calls of one HTTP request, which is a batch or a single call."""

    calls: list[Call]
    is_batch: bool

    def encode(self, answers: list[Call]) -> bytes:
        """Return answers in the form of the request."""
        return msgspec.json.encode(answers if self.is_batch else answers[0])


Lie = Callable[["LyingNode", Request], Awaitable[bytes | None]]
"""Answers a request, or returns None to close the connection without an answer."""


async def delay(node: "LyingNode", request: Request) -> bytes | None:
    """The answer is late."""
    await asyncio.sleep(node.random.uniform(0, DELAY_S_MAX))
    return http_answer(await node.forward(request))


async def lose_request(_node: "LyingNode", _request: Request) -> bytes | None:
    """The node receives no request, and the caller no answer."""
    return None


async def lose_answer(node: "LyingNode", request: Request) -> bytes | None:
    """The node executes the calls, and the caller receives no answer."""
    await node.forward(request)
    return None


async def duplicate(node: "LyingNode", request: Request) -> bytes | None:
    """The node receives the request twice, and the caller the second answer."""
    await node.forward(request)
    return http_answer(await node.forward(request))


async def reorder(node: "LyingNode", request: Request) -> bytes | None:
    """The answers of a batch come in another order, and that of a single call has another id."""
    answers = await node.answers(request)
    if request.is_batch:
        node.random.shuffle(answers)
    else:
        answers = [answers[0] | {"id": answers[0]["id"] + 1}]
    return http_answer(request.encode(answers))


async def limit_rate(node: "LyingNode", request: Request) -> bytes | None:
    """The node has a limit of requests; some say so in JSON, and some as a page."""
    if node.random.random() < 0.5:
        return http_answer(HTML, "429 Too Many Requests")
    code, message = RATE_LIMITED
    answers = [refusal(call, message, code) for call in request.calls]
    return http_answer(request.encode(answers), "429 Too Many Requests")


async def fail_gateway(node: "LyingNode", request: Request) -> bytes | None:
    """A gateway gives up, before or after the node has executed the calls."""
    if node.random.random() < 0.5:
        await node.forward(request)
    return http_answer(HTML, "502 Bad Gateway")


async def answer_html(_node: "LyingNode", _request: Request) -> bytes | None:
    """Something else than a node answers."""
    return http_answer(HTML)


async def cut(node: "LyingNode", request: Request) -> bytes | None:
    """The answer ends in the middle of its JSON."""
    answer = await node.forward(request)
    return http_answer(answer[: node.random.randrange(len(answer))])


async def hang(node: "LyingNode", request: Request) -> bytes | None:
    """The node executes the calls, and is silent until the caller gives up."""
    await node.forward(request)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(node.ended.wait(), SILENT_S_MAX)
    return None


async def be_another_chain(node: "LyingNode", request: Request) -> bytes | None:
    """A node of another chain has taken over the port."""
    return http_answer(await node.forward(request))


async def refuse_broadcast(node: "LyingNode", request: Request) -> bytes | None:
    """A broadcast is refused in known words; the node may have taken it all the same."""
    if request.calls[0]["method"] != BROADCAST:
        return http_answer(await node.forward(request))
    if node.random.random() < 0.5:
        await node.forward(request)
    words = node.random.choice(REFUSALS)
    return http_answer(request.encode([refusal(call, words) for call in request.calls]))


async def hide_transactions(node: "LyingNode", request: Request) -> bytes | None:
    """The replica knows neither receipts nor mined transactions."""
    answers = await node.answers(request)
    for call, answer in zip(request.calls, answers, strict=True):
        if call["method"] in {"eth_getTransactionReceipt", "eth_getTransactionByHash"}:
            answer["result"] = None
    return http_answer(request.encode(answers))


async def be_stale(node: "LyingNode", request: Request) -> bytes | None:
    """The replica is some blocks behind, and consistently so."""
    head = await node.head() - node.random.randint(1, STALE_BLOCKS_MAX)
    answers = await node.answers(
        request._replace(calls=[as_of(call, max(head, 0)) for call in request.calls])
    )
    for call, answer in zip(request.calls, answers, strict=True):
        answer.update(of_block(call, answer, max(head, 0)))
    return http_answer(request.encode(answers))


async def omit_log(node: "LyingNode", request: Request) -> bytes | None:
    """The node leaves out one log of those that it is asked for."""
    return await falsified(node, request, lambda logs, place: [*logs[:place], *logs[place + 1 :]])


async def repeat_log(node: "LyingNode", request: Request) -> bytes | None:
    """The node sends one log twice."""
    return await falsified(node, request, lambda logs, place: [*logs[: place + 1], *logs[place:]])


async def swap_logs(node: "LyingNode", request: Request) -> bytes | None:
    """The node sends one log after the one that follows it, or the last one first."""
    return await falsified(
        node, request, lambda logs, place: [*logs[:place], *reversed(logs[place:])]
    )


async def falsified(
    node: "LyingNode", request: Request, change: Callable[[list[Any], int], list[Any]]
) -> bytes:
    """Return the answer with other logs, as of a place among several that are counted."""
    answers = await node.answers(request)
    for call, answer in zip(request.calls, answers, strict=True):
        logs = answer.get("result")
        if call["method"] == "eth_getLogs" and isinstance(logs, list):
            counted = [place for place, log in enumerate(logs[:-1]) if log["topics"][0] in COUNTED]
            if counted:
                answer["result"] = change(logs, node.random.choice(counted))
                node.lies["logs"] += 1
    return http_answer(request.encode(answers))


LIES_OF_LOGS: Final[tuple[Lie, ...]] = (omit_log, repeat_log, swap_logs)
"""Lies that leave every answer well-formed."""

LIES: Final[tuple[Lie, ...]] = (
    delay,
    lose_request,
    lose_answer,
    duplicate,
    reorder,
    limit_rate,
    fail_gateway,
    answer_html,
    cut,
    hang,
    refuse_broadcast,
    hide_transactions,
    be_stale,
)
"""Lies of one node; `be_another_chain` needs a second one."""

BROADCAST_LIES: Final = frozenset({refuse_broadcast})
OF_REPLICAS: Final = frozenset({hide_transactions, be_stale, be_another_chain})


def refusal(call: Call, message: str, code: int = -32000) -> Call:
    """Return the answer that refuses a call."""
    return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}}


def as_of(call: Call, head: int) -> Call:
    """Return the call as it reads on a chain that ends with this block."""
    method, params = call["method"], list(call["params"])
    place = PLACE_OF_BLOCK.get(method)
    if place is not None and params[place] in NAMES_OF_HEAD:
        params[place] = hex(head)
    if method == "eth_getLogs" and "toBlock" in params[0]:
        params[0] = params[0] | {"toBlock": hex(min(head, int(params[0]["toBlock"], 16)))}
        if int(params[0]["fromBlock"], 16) > head:
            params[0] = params[0] | {"fromBlock": hex(head + 1), "toBlock": hex(head + 1)}
    return call | {"params": params}


def of_block(call: Call, answer: Call, head: int) -> Call:
    """Return the changed result of a call on a chain that ends with this block."""
    result = answer.get("result")
    if call["method"] == "eth_blockNumber":
        return {"result": hex(head)}
    if call["method"] == "eth_getLogs" and isinstance(result, list):
        return {"result": [log for log in result if int(log["blockNumber"], 16) <= head]}
    if isinstance(result, dict):
        number = result.get("number") or result.get("blockNumber")
        return {"result": None} if number and int(number, 16) > head else {}
    return {}


class LyingNode:
    """One lying proxy in front of one node. It is honest unless `is_lying`."""

    def __init__(
        self,
        node_url: str,
        client: httpx.AsyncClient,
        seed: int | str,
        kinds: Iterable[Lie] = LIES,
        rate: float = 0.15,
        other_url: str | None = None,
    ) -> None:
        """`other_url` is that of a node of another chain."""
        self._node_url = node_url
        self._other_url = other_url
        self._client = client
        self._kinds = (*kinds, *([be_another_chain] if other_url else []))
        self._rate = rate
        self._present: Lie | None = None
        self._lasts = 0
        self._is_elsewhere = False
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[Any]] = {}
        self.ended = asyncio.Event()
        self.random = random.Random(seed)
        self.is_lying = False
        self.url = ""
        self.lies: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        task = asyncio.current_task()
        assert task is not None
        self._connections[writer] = task
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while (answer := await self._answer(await read_body(reader))) is not None:
                if writer.is_closing():
                    break
                writer.write(answer)
                await writer.drain()
        del self._connections[writer]
        writer.close()

    async def _answer(self, body: bytes) -> bytes | None:
        decoded = msgspec.json.decode(body)
        is_batch = isinstance(decoded, list)
        request = Request(decoded if is_batch else [decoded], is_batch)
        lie = self._next_lie() if self.is_lying else None
        if (lie is be_another_chain) != self._is_elsewhere:
            self._move()
            return None
        if lie is None:
            return http_answer(await self.forward(request))
        if lie not in BROADCAST_LIES or request.calls[0]["method"] == BROADCAST:
            self.lies[lie.__name__] += 1
        return await lie(self, request)

    def _next_lie(self) -> Lie | None:
        """Return the lie for the next request: the present one for a while, then mostly none."""
        if self._lasts > 0:
            self._lasts -= 1
            return self._present
        if self.random.random() >= self._rate:
            return None
        self._present = self.random.choice(self._kinds)
        self._lasts = self.random.choice(_lasts_of(self._present))
        return self._present

    def _move(self) -> None:
        """Have the node of the other chain answer, or that of this one again; all connections end."""
        self._is_elsewhere = not self._is_elsewhere
        for writer in self._connections:
            writer.close()

    async def close(self) -> None:
        """End all connections."""
        self.ended.set()
        tasks = list(self._connections.values())
        for writer in self._connections:
            writer.close()
        await asyncio.gather(*tasks)

    def heal(self) -> None:
        """Lie no more."""
        self.is_lying, self._lasts = False, 0
        if self._is_elsewhere:
            self._move()

    async def forward(self, request: Request) -> bytes:
        """Return the answer to a request of the node that is there."""
        url = self._other_url if self._is_elsewhere and self._other_url else self._node_url
        body = request.encode(request.calls)
        headers = {"content-type": "application/json"}
        response = await self._client.post(url, content=body, headers=headers)
        return response.content

    async def answers(self, request: Request) -> list[Call]:
        """Return the node's answers in the order of the calls."""
        decoded = msgspec.json.decode(await self.forward(request))
        answer_by_id = {each["id"]: each for each in (decoded if request.is_batch else [decoded])}
        return [answer_by_id[call["id"]] for call in request.calls]

    async def head(self) -> int:
        """Return the number of the node's newest block."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
        answer = (await self._client.post(self._node_url, json=call)).json()
        return int(answer["result"], 16)


def _lasts_of(lie: Lie) -> Sequence[int]:
    if lie is hang:
        return LASTS_OF_SILENCE
    return LASTS_OF_REPLICA if lie in OF_REPLICAS else LASTS


@contextlib.asynccontextmanager
async def lying(
    node_url: str,
    seed: int | str,
    kinds: Iterable[Lie] = LIES,
    rate: float = 0.15,
    other_url: str | None = None,
) -> AsyncIterator[LyingNode]:
    """Yield a lying proxy in front of this node, and of that of another chain if there is one."""
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
        node = LyingNode(node_url, client, seed, kinds, rate, other_url)
        server = await asyncio.start_server(node.serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
        async with server:
            node.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            try:
                yield node
            finally:
                await node.close()

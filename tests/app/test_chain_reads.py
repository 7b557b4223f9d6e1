"""Reads of the chain for requests leave connections to the node for its loops."""

import asyncio
import contextlib
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.rigs.applications import an_app, serving
from tests.rigs.trading import TradingRig, a_rig_on
from tests.rigs.values import a_buy, a_deployment, an_address

from foretell.app.builders import Resources, chain_view
from foretell.app.chain_reads import (
    OWN_BOUNDS,
    OWN_PLACES,
    PUBLIC_BOUNDS,
    PUBLIC_PLACES,
    PUBLIC_PLACES_PER_CLIENT,
    ChainReads,
)
from foretell.app.http.fast_routes import served_under
from foretell.chain.connections.node_connections import CONNECTIONS_MAX
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.sharding import ShardNumber
from foretell.edge.telemetry import Telemetry
from foretell.relayer.context import RelayerContext
from foretell.relayer.routes import build_app
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.outbox.transactions import RELAYED
from foretell.store.public_reads.places import WaitBounds, answering
from foretell.trading.accounts.accounts import OrderNonces
from foretell.trading.accounts.wallet_checks import WalletChecks
from foretell.trading.context import TradingContext
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

GONE: Any = None
QUESTION = "eth_getCode"
SHORTLY = WaitBounds(wait_s=0.05, per_client=2, total=4)
"""Few reads wait, and not for long."""
WITHIN_S = 120.0
SETTLED_S = 0.2
"""Time for requests that have no place to reach the node nevertheless."""


class SlowNode:
    """A node that answers nothing until a test lets it, and counts the requests that it has at once."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.running = 0
        self.running_max = 0
        self.may_answer = asyncio.Event()
        self.serving: set[Any] = set()
        self._changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split()[0])
                request = msgspec.json.decode(await reader.readexactly(size))
                calls = request if isinstance(request, list) else [request]
                result = await self._answer(calls[0]["method"])
                answers = [{"id": each["id"], "result": result} for each in calls]
                body = msgspec.json.encode(answers if isinstance(request, list) else answers[0])
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _answer(self, method: str) -> str:
        self.asked[method] += 1
        self._changed.set()
        if method == "eth_blockNumber":
            return "0x7"
        self.running += 1
        self.running_max = max(self.running, self.running_max)
        try:
            await self.may_answer.wait()
        finally:
            self.running -= 1
        return "0x" + "00" * 32

    async def until_running(self, count: int) -> None:
        async with asyncio.timeout(WITHIN_S):
            while self.running < count:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def node() -> SlowNode:
    return SlowNode()


@pytest.fixture
async def rpc(node: SlowNode) -> AsyncIterator[Rpc]:
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        async with Rpc(f"http://127.0.0.1:{port}", timeout_s=WITHIN_S) as rpc:
            yield rpc
        node.may_answer.set()
        await asyncio.gather(*node.serving)


@pytest.fixture
def resources(settings: Settings, rpc: Rpc) -> Resources:
    """Resources whose reads of the chain wait for a place however long a busy machine takes."""
    resources = Resources(settings, GONE, a_deployment(), GONE, rpc, ShardNumber(0))
    bounds = (each._replace(wait_s=WITHIN_S) for each in (PUBLIC_BOUNDS, OWN_BOUNDS))
    vars(resources)["chain_reads"] = ChainReads(*bounds)
    return resources


@pytest.fixture
def relayer(resources: Resources) -> RelayerContext:
    return RelayerContext(
        database=GONE,
        deployment=resources.deployment,
        reader=resources.reader,
        sender=GONE,
        key_ring=GONE,
        now_ms=lambda: 0,
        new_uuid=lambda: "",
    )


@contextlib.asynccontextmanager
async def asking(calls: list[Awaitable[Any]]) -> AsyncIterator[Sequence[asyncio.Future[Any]]]:
    """Let calls go on during a block; the block sees them end."""
    tasks = [asyncio.ensure_future(each) for each in calls]
    try:
        yield tasks
    finally:
        await asyncio.gather(*tasks, return_exceptions=True)


def a_client(context: RelayerContext, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(an_app(build_app, context), client=(address, 1))  # type: ignore[arg-type]  # scopes typed closer
    return httpx.AsyncClient(transport=transport, base_url="http://relayer", timeout=60)


async def test_many_questions_of_an_address_do_not_delay_the_head_of_the_chain(
    resources: Resources, relayer: RelayerContext, node: SlowNode
) -> None:
    """With all connections in use, an engine saw no head, and took no orders after two minutes."""
    async with a_client(relayer, "10.0.0.1") as http:
        asked = [
            http.get("/deployed", params={"address": an_address(f"stranger {number}")})
            for number in range(500)
        ]
        async with asking(list(asked)) as answers:
            await node.until_running(PUBLIC_PLACES_PER_CLIENT)
            async with asyncio.timeout(WITHIN_S):
                assert await resources.chain_lag._fetch_head() == 7
            assert not node.may_answer.is_set()
            node.may_answer.set()
    statuses = Counter(each.result().status_code for each in answers)
    assert node.running_max == PUBLIC_PLACES_PER_CLIENT
    allowed = PUBLIC_PLACES_PER_CLIENT + PUBLIC_BOUNDS.per_client
    assert statuses == {200: allowed, 429: 500 - allowed}
    assert node.asked[QUESTION] == allowed


async def test_other_clients_have_places_beside_one_with_many_questions(
    relayer: RelayerContext, node: SlowNode
) -> None:
    async with a_client(relayer, "10.0.0.1") as many, a_client(relayer, "10.0.0.2") as one:
        wallet = {"address": an_address("wallet")}
        async with asking([many.get("/deployed", params=wallet) for _ in range(20)]):
            await node.until_running(PUBLIC_PLACES_PER_CLIENT)
            async with asking([one.get("/deployed", params=wallet)]) as answers:
                await node.until_running(PUBLIC_PLACES_PER_CLIENT + 1)
                node.may_answer.set()
    assert answers[0].result().json() == {"deployed": True}


async def test_all_requests_together_leave_connections(
    resources: Resources, node: SlowNode
) -> None:
    async def ask(client: str, *, is_public: bool) -> None:
        with answering(client):
            reader = resources.reader.public if is_public else resources.reader
            await reader.code(an_address(client))

    clients = [f"10.0.0.{number}" for number in range(30)]
    calls = [ask(each, is_public=is_public) for each in clients for is_public in (True, False)]
    async with asking(list(calls)) as answers:
        await node.until_running(PUBLIC_PLACES + OWN_PLACES)
        async with asyncio.timeout(WITHIN_S):
            assert await resources.reader.head() == 7
        node.may_answer.set()
    assert [each.result() for each in answers] == [None] * len(calls)
    assert node.running_max == PUBLIC_PLACES + OWN_PLACES < CONNECTIONS_MAX


async def test_the_health_of_the_relayer_costs_one_question_at_a_time(
    relayer: RelayerContext, node: SlowNode
) -> None:
    http = a_client(relayer, "10.0.0.1")
    async with http, asking([http.get("/") for _ in range(50)]) as answers:
        await node.until_running(1)
        node.may_answer.set()
    assert {each.result().status_code for each in answers} == {200}
    assert (node.asked["eth_chainId"], node.running_max) == (1, 1)


async def test_accounts_of_strangers_have_the_places_of_strangers(
    resources: Resources, node: SlowNode
) -> None:
    view = chain_view(resources)
    fetch_public_nonce = view.fetch_public_nonce
    assert fetch_public_nonce is not None
    maker, exchange = an_address("maker"), resources.deployment.exchange

    async def ask(call: Callable[[], Awaitable[Any]]) -> None:
        with answering("10.0.0.1"):
            await call()

    public = [lambda: view.fetch_has_code(maker), lambda: fetch_public_nonce(exchange, maker)]
    async with asking([ask(call) for call in public * 10]):
        await node.until_running(PUBLIC_PLACES_PER_CLIENT)
        async with asking([ask(lambda: view.fetch_nonce(exchange, maker)) for _ in range(20)]):
            await node.until_running(PUBLIC_PLACES_PER_CLIENT + OWN_PLACES)
            node.may_answer.set()
    assert node.running_max == PUBLIC_PLACES_PER_CLIENT + OWN_PLACES


async def test_guard_trial_runs_of_requests_leave_connections(
    resources: Resources, node: SlowNode
) -> None:
    """A finding: relays of strangers, whose trial run a node takes long for, took all connections of the loops."""
    sender = resources.sender(bytes(31) + b"\1", RELAYED)
    relayed = OutgoingTx("relay", an_address("hub"), b"slow")

    async def try_out(number: int) -> None:
        with answering(f"10.0.0.{number}"):
            await sender.revert_of(relayed)

    async with asking([try_out(number) for number in range(2 * CONNECTIONS_MAX)]):
        await node.until_running(OWN_PLACES)
        async with asyncio.timeout(WITHIN_S):
            assert await resources.chain_lag._fetch_head() == 7
        await asyncio.sleep(SETTLED_S)
        node.may_answer.set()
    assert node.running_max == OWN_PLACES


async def held(gate: Any, client: str, entered: asyncio.Event, until: asyncio.Event) -> None:
    with answering(client):
        async with gate(QUESTION):
            entered.set()
            await until.wait()


@pytest.mark.parametrize(
    ("clients", "refusal"),
    [
        (["a"] * (PUBLIC_PLACES_PER_CLIENT + 1), TooManyRequests),
        (["a", "a", "b", "b", "c"], ReadsBusy),
    ],
)
async def test_a_stranger_without_a_place_in_time_is_refused(
    clients: list[str], refusal: type[Exception]
) -> None:
    gate, until = ChainReads(public_bounds=SHORTLY).public, asyncio.Event()
    *first, last = clients
    entered = [asyncio.Event() for _ in first]
    async with asking([held(gate, *each, until) for each in zip(first, entered, strict=True)]):
        for each in entered:
            await each.wait()
        with pytest.raises(refusal):
            await held(gate, last, asyncio.Event(), until)
        until.set()


async def test_a_signed_request_without_a_place_meets_a_node_that_is_unavailable() -> None:
    """It may have had an effect, of which a refusal would say that nothing was done."""
    gate, until = ChainReads(own_bounds=SHORTLY).own, asyncio.Event()
    entered = [asyncio.Event() for _ in range(OWN_PLACES)]
    async with asking([held(gate, "a", each, until) for each in entered]):
        for each in entered:
            await each.wait()
        with pytest.raises(ChainUnavailable, match=QUESTION) as refusal:
            await held(gate, "b", asyncio.Event(), until)
        async with asyncio.timeout(WITHIN_S), gate(QUESTION):
            pass  # no request asks
        until.set()
    assert not refusal.value.definite


def with_slow_nonces(rig: TradingRig, resources: Resources) -> TradingContext:
    nonces = OrderNonces(chain_view(resources).fetch_nonce, rig.clock.now_ms)
    return dataclasses.replace(rig.context, nonces=nonces)


def with_slow_wallets(rig: TradingRig, resources: Resources) -> TradingContext:
    wallets = WalletChecks(chain_view(resources).wallets, rig.clock.now_ms)
    return dataclasses.replace(rig.context, wallet_checks=wallets)


def a_buy_of_a_safe(name: str) -> SignedOrder:
    safe = a_deployment().safe_of(an_address(name))
    return a_buy(name, maker=safe, signature_type=SignatureType.SAFE)


@pytest.mark.parametrize(
    ("with_slow", "order_of"),
    [(with_slow_nonces, a_buy), (with_slow_wallets, a_buy_of_a_safe)],
    ids=["nonces", "wallets"],
)
async def test_orders_of_the_fast_route_leave_connections(
    resources: Resources,
    node: SlowNode,
    fresh_database: Database,
    tmp_path: Path,
    with_slow: Callable[[TradingRig, Resources], TradingContext],
    order_of: Callable[[str], SignedOrder],
) -> None:
    """They asked as if they were no requests, for all connections at once."""
    names = [f"trader {number}" for number in range(CONNECTIONS_MAX + OWN_PLACES)]
    async with a_rig_on(tmp_path, fresh_database) as rig, contextlib.AsyncExitStack() as stack:
        await rig.open("market")
        traders = [await rig.trader(name) for name in names]
        for trader in traders:
            await trader.get("/data/orders")  # now its key is cached
        routes = fast_routes(with_slow(rig, resources))
        app = Telemetry(rig.app, "orders", lambda: "an id")
        host = await stack.enter_async_context(serving(rig.app, served_under("", routes, app)))
        client = httpx.AsyncClient(base_url=f"http://{host}", trust_env=False, timeout=60)
        http = await stack.enter_async_context(client)
        sent = [
            trader.send("POST", "/order", trader.body(order_of(trader.name)), client=http)
            for trader in traders
        ]
        async with asking(list(sent)) as answers:
            await node.until_running(OWN_PLACES)
            async with asyncio.timeout(WITHIN_S):
                assert await resources.chain_lag._fetch_head() == 7
            await asyncio.sleep(SETTLED_S)
            node.may_answer.set()
    assert node.running_max == OWN_PLACES
    assert all(each.result().status_code for each in answers)

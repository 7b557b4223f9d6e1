"""Faults that the load of a soak counts: statuses, streams that end, orders that are not found again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.rigs.applications import serving
from tests.rigs.scripted_api import DEPLOYMENT, ScriptedApi
from tests.rigs.values import a_key
from websockets.asyncio.server import ServerConnection, serve

from foretell.bench.rigs.ports import free_port
from foretell.bench.rigs.soak import audit
from foretell.bench.rigs.soak.audit import AcceptedOrder, lost_orders, unsettled_trades
from foretell.bench.rigs.soak.clients import (
    SandboxAddresses,
    Seen,
    SoakClients,
    SoakMarket,
    StrictClient,
    follow_stream,
)
from foretell.bench.rigs.soak.messages import FAULTS_SHOWN_MAX
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.credentials import Credentials
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = pytest.mark.anyio

DAY_S = 1_767_225_600
MARKET = SoakMarket("0xc0", "1", "2", "slug")


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi()


@pytest.fixture
def seen() -> Seen:
    return Seen()


@contextlib.asynccontextmanager
async def a_trader(api: ScriptedApi, seen: Seen) -> AsyncIterator[TradingClient]:
    async with serving(api) as host, StrictClient(f"http://{host}", seen) as client:
        separators = DEPLOYMENT.separators()
        trader = TradingClient(client, Wallet(a_key("t")), 80002, separators, lambda: DAY_S)
        trader.credentials = Credentials("key", "c2VjcmV0", "phrase")
        yield trader


async def test_a_server_fault_counts_though_the_repetition_succeeds(
    api: ScriptedApi, seen: Seen
) -> None:
    api.prepare("GET /book", {"error": "busy"}, status=503)
    api.prepare("GET /book", {"bids": []})
    async with a_trader(api, seen) as trader:
        assert await trader.http.get("/book") == {"bids": []}
    assert seen.faults == 1
    assert seen.examples[0].startswith("GET /book answered 503")


async def test_a_refusal_is_left_to_the_caller(api: ScriptedApi, seen: Seen) -> None:
    api.prepare("GET /book", {"error": "no such token"}, status=404)
    async with a_trader(api, seen) as trader:
        with pytest.raises(ApiRefused):
            await trader.http.get("/book")
    assert seen.faults == 0


async def test_an_order_that_is_not_found_or_in_another_status_is_lost(
    api: ScriptedApi, seen: Seen
) -> None:
    api.prepare("GET /data/order/kept", {"status": "CANCELED"})
    api.prepare("GET /data/order/open", {"status": "LIVE"})
    api.prepare("GET /data/order/gone", {"error": "order_not_found"}, status=404)
    async with a_trader(api, seen) as trader:
        accepted = {name: AcceptedOrder(trader, "CANCELED") for name in ("kept", "open", "gone")}
        assert await lost_orders(accepted, seen) == 2
    assert "order open is LIVE, and must be CANCELED" in seen.examples


def clients_of(trader: TradingClient) -> SoakClients:
    http = trader.http
    assert isinstance(http, StrictClient)
    url = http.base_url
    addresses = SandboxAddresses(url, url, url, url, url, 80002, MARKET)
    return SoakClients(addresses, http, http, http, (trader,), http)


@pytest.mark.parametrize(
    ("metrics", "known"),
    [
        (b"a 1\nforetell_sqlite_memory_bytes 4.5e+06\nb 2\n", 4.5e6),
        (b"foretell_sqlite_memory_bytes NaN\n", None),
        (b"foretell_sqlite_memory_bytes_other 1.0\n", None),
    ],
)
async def test_the_memory_of_sqlite_is_that_of_the_servers_metrics(
    api: ScriptedApi, seen: Seen, metrics: bytes, known: float | None
) -> None:
    api.prepare("GET /metrics", metrics)
    async with a_trader(api, seen) as trader:
        assert await clients_of(trader).sqlite_bytes() == known


async def test_trades_are_looked_up_on_every_page(api: ScriptedApi, seen: Seen) -> None:
    seen.trades |= {"one", "two", "three"}
    first = {"data": [{"id": "one", "status": "CONFIRMED"}], "next_cursor": "more"}
    last = [{"id": "two", "status": "CONFIRMED"}, {"id": "three", "status": "MINED"}]
    api.prepare("GET /data/trades", first, {"data": last, "next_cursor": "LTE="})
    async with a_trader(api, seen) as trader:
        assert await unsettled_trades(clients_of(trader), seen, 0.0) == 1
    assert seen.faults == 0


async def test_a_settlement_that_no_stream_reported_is_a_fault(
    api: ScriptedApi, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "LOOK_S", 0.01)
    seen.matched("one")
    api.prepare(
        "GET /data/trades",
        {"data": [{"id": "one", "status": "CONFIRMED"}]} | {"next_cursor": "LTE="},
    )
    async with a_trader(api, seen) as trader:
        assert await unsettled_trades(clients_of(trader), seen, 0.0) == 0
    assert seen.examples == ["no stream reported that trade one settled"]


@pytest.mark.parametrize(("status", "faults"), [("CONFIRMED", 0), ("FAILED", 1)])
def test_the_end_of_a_trade_is_taken_once(seen: Seen, status: str, faults: int) -> None:
    seen.matched("one")
    seen.take_trade("one", "MINED")
    assert seen.unsettled_s() > 0
    seen.take_trade("one", status)
    assert (seen.unsettled_s(), len(seen.settled_s), seen.faults) == (0, 1, faults)
    seen.take_trade("other", "CONFIRMED")
    assert len(seen.settled_s) == 1


def test_all_faults_are_counted_and_some_are_described(seen: Seen) -> None:
    for number in range(FAULTS_SHOWN_MAX + 5):
        seen.fault(f"fault {number}")
    assert (seen.faults, len(seen.examples)) == (FAULTS_SHOWN_MAX + 5, FAULTS_SHOWN_MAX)


async def test_a_stream_is_read_and_its_end_is_a_fault(seen: Seen) -> None:
    async def answer(connection: ServerConnection) -> None:
        assert await connection.recv() == '{"type":"user"}'
        await connection.send("PONG")
        await connection.send('[{"event_type": "trade", "id": "one", "status": "CONFIRMED"}]')

    seen.matched("one")
    async with serve(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(60):
            await follow_stream(f"ws://127.0.0.1:{port}", {"type": "user"}, seen)
    assert (seen.stream_messages, len(seen.settled_s), seen.faults) == (1, 1, 1)
    assert seen.examples[0].endswith("ended")


async def test_a_stream_that_cannot_be_opened_is_a_fault(seen: Seen) -> None:
    await follow_stream(f"ws://127.0.0.1:{free_port()}", {"type": "user"}, seen)
    assert seen.examples[0].startswith("a stream failed: ")

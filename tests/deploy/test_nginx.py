"""The reference configuration of nginx in front of an application that answers what it was sent."""

import asyncio
import contextlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.deploy.rig import CONFIGURATION, Proxy, proxy_of
from tests.rigs.applications import serving
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.http11 import Response

from foretell.app.http.connection_limits import CONNECTION_LIMITS
from foretell.app.http.connection_places import UNLIMITED, ConnectionPlaces, PlaceLimits
from foretell.creation.uploads import UPLOAD_BYTES_MAX
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

CLIENT = "127.0.0.7"
HEADERS = {
    "POLY_ADDRESS": "0x01",
    "SERVICE_API_KEY": "key",
    "POLY_BUILDER_SIGNATURE": "sig=",
    "X-Forwarded-For": "203.0.113.9",
}
SHORT_TIMEOUTS = {
    "client_header_timeout 20s;": "client_header_timeout 4s;",
    "client_body_timeout 30s;": "client_body_timeout 4s;",
}
"""Long enough for a TLS handshake on a busy machine, which the first of them bounds too."""
WITHIN_S = 60.0


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the path, the headers and the client that this application sees."""
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    size = 0
    if scope["type"] == "http":
        more = True
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
    seen = json.dumps(
        {
            "path": scope["raw_path"].decode(),
            "query": scope["query_string"].decode(),
            "headers": headers,
            "body_bytes": size,
            "client": ClientAddresses(["127.0.0.1"]).client(
                scope["client"][0], headers.get("x-forwarded-for")
            ),
        }
    )
    if scope["type"] == "http":
        answer_headers = [(b"content-length", str(len(seen)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": answer_headers})
        await send({"type": "http.response.body", "body": seen.encode()})
        return
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": seen})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest.fixture(scope="module")
async def proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    async with serving(echo) as host:
        with proxy_of(host, tmp_path_factory.mktemp("nginx")) as proxy:
            yield proxy


@pytest.fixture
async def https(proxy: Proxy) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.AsyncHTTPTransport(verify=proxy.trust, local_address=CLIENT)
    async with httpx.AsyncClient(transport=transport, base_url=proxy.url, timeout=60) as client:
        yield client


async def test_headers_with_underscores_arrive(https: httpx.AsyncClient) -> None:
    seen = (await https.get("/clob/auth/api-keys", headers=HEADERS)).json()["headers"]
    assert (seen["poly_address"], seen["service_api_key"]) == ("0x01", "key")
    assert seen["poly_builder_signature"] == "sig="


async def test_the_client_is_the_address_that_the_proxy_sees(https: httpx.AsyncClient) -> None:
    seen = (await https.get("/clob/book", headers=HEADERS)).json()
    assert seen["headers"]["x-forwarded-for"] == CLIENT
    assert seen["client"] == CLIENT
    assert seen["headers"]["x-forwarded-proto"] == "https"
    assert seen["headers"]["host"] == "127.0.0.1"


@pytest.mark.parametrize(
    "path", ["/clob/order/a%2Fb", "/clob//book", "/clob/a%20b/", "/clob/%C3%A9"]
)
async def test_the_path_arrives_as_it_was_signed(proxy: Proxy, path: str) -> None:
    url = httpx.URL(proxy.url).copy_with(raw_path=path.encode() + b"?x=%20&y")
    async with httpx.AsyncClient(verify=proxy.trust, timeout=60) as client:
        seen = (await client.get(url)).json()
    assert (seen["path"], seen["query"]) == (path, "x=%20&y")


@pytest.mark.deviation(19)
@pytest.mark.parametrize("path", ["/metrics", "//metrics", "/%6Detrics", "/clob/../metrics"])
async def test_the_metrics_are_not_public(proxy: Proxy, path: str) -> None:
    url = httpx.URL(proxy.url).copy_with(raw_path=path.encode())
    async with httpx.AsyncClient(verify=proxy.trust, timeout=60) as client:
        answer = await client.get(url)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_route"


async def test_a_stream_passes(proxy: Proxy) -> None:
    headers = {"POLY_ADDRESS": "0x01"}
    url = proxy.stream_url + "/clob/ws/market"
    async with connect(url, ssl=proxy.trust, additional_headers=headers, proxy=None) as stream:
        seen: dict[str, Any] = json.loads(await stream.recv())
        assert seen["path"] == "/clob/ws/market"
        assert seen["headers"]["poly_address"] == "0x01"
        await stream.ping()


@pytest.mark.parametrize("method", [b"POST", b"GET"])
async def test_guard_a_body_behind_an_upgrade_that_is_ignored_is_no_request_of_another_client(
    proxy: Proxy, method: bytes
) -> None:
    """A finding: it was the next request on a connection that other clients use, and named a client of its own."""
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n"
    head = b"%s /asked HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" % method
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=proxy.trust)
    async with asyncio.timeout(WITHIN_S):
        for path, length in (("/asked", len(smuggled)), ("/next", 0)):
            writer.write(head.replace(b"/asked", path.encode()))
            writer.write(b"Content-Length: %d\r\n\r\n" % length + smuggled[:length])
            answer = await reader.readuntil(b"\r\n\r\n")
            size = int(re.findall(rb"(?i)content-length: (\d+)", answer)[0])
            seen = json.loads(await reader.readexactly(size))
            assert (seen["path"], seen["body_bytes"]) == (path, length)
            assert "upgrade" not in seen["headers"]
    writer.close()


async def test_the_largest_upload_passes_and_a_larger_one_is_refused_in_json(
    https: httpx.AsyncClient,
) -> None:
    passed = await https.post("/create-market/prepare", content=bytes(UPLOAD_BYTES_MAX))
    assert passed.json()["body_bytes"] == UPLOAD_BYTES_MAX
    refused = await https.post("/create-market/prepare", content=bytes(18 * 1024 * 1024))
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "payload_too_large")
    assert refused.headers["content-type"] == "application/json"


async def test_a_head_that_is_too_long_is_refused_in_json(https: httpx.AsyncClient) -> None:
    refused = await https.get("/clob/book", headers={"X": "y" * CONNECTION_LIMITS.head_bytes_max})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "malformed_request")


async def test_an_exchange_that_does_not_run_is_a_502_in_json(tmp_path: Path) -> None:
    with proxy_of("127.0.0.1:1", tmp_path) as proxy:
        async with httpx.AsyncClient(verify=proxy.trust, timeout=60) as client:
            answer = await client.get(proxy.url + "/clob/book")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unavailable")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /clob/book HTT",
        b"GET /clob/book HTTP/1.1\r\nHost: a\r\nX: ",
        b"POST /clob/order HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
        b"POST /clob/order HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
)
async def test_a_client_that_is_too_slow_is_disconnected_without_an_answer(
    tmp_path: Path, sent: bytes
) -> None:
    """nginx notes 408 in its log and sends nothing, so no `error_page` can give it a body."""
    async with serving(echo) as host:
        with proxy_of(host, tmp_path, SHORT_TIMEOUTS) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=proxy.trust)
            writer.write(sent)
            async with asyncio.timeout(WITHIN_S):
                assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        assert " 408 0 " in (tmp_path / "access.log").read_text()


async def test_plain_http_is_refused_and_not_redirected(proxy: Proxy) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        plain = await client.get(f"http://127.0.0.1:{proxy.plain_port}/clob/book")
        on_the_port_of_tls = await client.get(f"http://127.0.0.1:{proxy.port}/clob/book")
    assert (plain.status_code, on_the_port_of_tls.status_code) == (403, 403)
    assert plain.json() == on_the_port_of_tls.json()
    assert plain.json()["error"]["code"] == "https_required"


async def test_answers_name_the_next_visits_protocol(https: httpx.AsyncClient) -> None:
    answer = await https.get("/clob/book")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize(
    ("source", "seen"),
    [(CLIENT, ["-"]), ("127.0.0.9", [f"2001:db8:a:b::{host:x}" for host in range(256)])],
    ids=["address", "network"],
)
async def test_attack_h2_a_client_behind_nginx_takes_no_others_places(
    tmp_path: Path, source: str, seen: list[str]
) -> None:
    """Foretell counts connections of a trusted proxy in total only, so nginx bounds each client."""
    (text,) = re.findall(r"limit_conn foretell_clients (\d+);", CONFIGURATION.read_text())
    most, addresses = int(text), itertools.cycle(seen)
    places = ConnectionPlaces(PlaceLimits(most + 10, 5), lambda: ClientAddresses(["127.0.0.1"]))
    async with serving(echo, places=places) as host, contextlib.AsyncExitStack() as open_streams:
        with proxy_of(host, tmp_path) as proxy:

            async def opened(source: str) -> ClientConnection:
                stream = connect(
                    f"{proxy.stream_url}/clob/ws/market",
                    ssl=proxy.trust,
                    additional_headers={"X-Seen": next(addresses)},
                    local_addr=(source, 0),
                    proxy=None,
                )
                return await open_streams.enter_async_context(stream)

            held = [await opened(source) for _ in range(most)]
            beyond = [await refused_stream(opened(source)) for _ in range(5)]
            assert await (await opened("127.0.0.8")).recv()
            transport = httpx.AsyncHTTPTransport(verify=proxy.trust, local_address="127.0.0.8")
            async with httpx.AsyncClient(
                transport=transport, base_url=proxy.url, timeout=60
            ) as other:
                assert (await other.get("/clob/book")).status_code == 200
            await held[0].close()
            assert await (await opened(source)).recv()
    for answer in beyond:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert json.loads(answer.body or b"")["error"]["code"] == "too_many_connections"
        assert answer.headers["strict-transport-security"] == "max-age=31536000"


async def test_attack_h1_nginx_has_the_pace_of_foretell_for_each_client(tmp_path: Path) -> None:
    """A finding: one client had no pace behind it, and the APIs without limits no bound."""
    text, limits = CONFIGURATION.read_text(), PlaceLimits.of(UNLIMITED)
    (rate,) = re.findall(r"zone=foretell_requests:10m rate=(\d+)r/s;", text)
    ((burst, delay),) = re.findall(r"zone=foretell_requests burst=(\d+) delay=(\d+);", text)
    (most,) = re.findall(r"limit_conn foretell_clients (\d+);", text)
    assert (int(rate), int(delay)) == (limits.requests_per_s, limits.requests_burst)
    assert int(burst) - int(delay) >= int(most), "nobody is refused"
    slowly = {"rate=1000r/s": "rate=1r/m", "burst=5200 delay=5000": "burst=3 delay=3"}
    async with serving(echo) as host:
        with proxy_of(host, tmp_path, slowly) as proxy:
            seen = [await statuses_of(proxy, source, 5) for source in (CLIENT, "127.0.0.8")]
    assert seen == [[200, 200, 200, 200, 503]] * 2


async def statuses_of(proxy: Proxy, source: str, requests: int) -> list[int]:
    transport = httpx.AsyncHTTPTransport(verify=proxy.trust, local_address=source)
    async with httpx.AsyncClient(transport=transport, base_url=proxy.url, timeout=60) as client:
        return [(await client.get("/clob/book")).status_code for _ in range(requests)]


async def refused_stream(opening: Coroutine[Any, Any, ClientConnection]) -> Response:
    with pytest.raises(InvalidStatus) as refused:
        await opening
    return refused.value.response


async def test_an_idle_connection_ends_at_the_proxy_first() -> None:
    (kept_s,) = re.findall(
        r"^ {4}keepalive_timeout (\d+)s;  #", CONFIGURATION.read_text(), re.MULTILINE
    )
    assert int(kept_s) < CONNECTION_LIMITS.keep_alive_s

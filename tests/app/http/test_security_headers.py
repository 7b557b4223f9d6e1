"""Headers for browsers, on the answers of each part of the server."""

import asyncio

import httpx
import pytest
from tests.rigs.applications import serving

from foretell.app.api_server import ApiServer
from foretell.app.gateway import bind
from foretell.app.http.fast_routes import served_under
from foretell.app.roles import Role
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.security_headers import SECURITY_HEADERS, SecureApplication
from foretell.edge.telemetry import Message, Receive, Scope, Send, Telemetry

pytestmark = pytest.mark.anyio

WANTED = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
OWN_POLICY = "default-src 'self'"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
WITHIN_S = 60.0


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    policy = [(b"content-security-policy", OWN_POLICY.encode())] if scope["path"] == "/docs" else []
    headers = [(b"content-length", b"2"), *policy]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"OK"})


async def refuse_streams(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    if scope["path"] == "/closed":
        await send({"type": "websocket.close", "code": 1008})
        return
    assert scope["path"] != "/broken", "an error before the handshake is answered"
    headers = [(b"content-length", b"4"), (b"referrer-policy", b"no-referrer")]
    await send({"type": "websocket.http.response.start", "status": 429, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b"busy"})


def reply_at_once(request: FastRequest, reply: SendReply) -> None:
    reply(FastResponse(200, request.body))


async def head_of(host: str, port: int, request: bytes) -> tuple[int, list[tuple[str, str]]]:
    """Return the status and the headers of the answer, their names in lower case."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    async with asyncio.timeout(WITHIN_S):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    writer.close()
    first, *lines = head.strip().split("\r\n")
    parts = [line.partition(": ") for line in lines]
    return int(first.split()[1]), [(name.lower(), value) for name, _, value in parts]


def seen(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Return the headers of note; each must be there once."""
    found = [(name, value) for name, value in headers if name in WANTED]
    assert len(found) == len(WANTED)
    return dict(found)


@pytest.mark.parametrize("path", ["/slow", "/fast"])
async def test_attack_l7_every_answer_has_the_headers(path: str) -> None:
    secured = SecureApplication(application)
    route = FastRoute(lambda query: not query, reply_at_once)
    routes = served_under(
        "", {("GET", "/fast"): route}, Telemetry(secured, "headers", lambda: "id")
    )
    async with (
        serving(secured, routes) as host,
        httpx.AsyncClient(base_url=f"http://{host}", trust_env=False, timeout=60) as client,
    ):
        assert seen((await client.get(path)).headers.multi_items()) == WANTED


async def test_attack_l7_a_page_keeps_its_own_policy() -> None:
    async with (
        serving(SecureApplication(application)) as host,
        httpx.AsyncClient(base_url=f"http://{host}", trust_env=False, timeout=60) as client,
    ):
        answer = await client.get("/docs")
    wanted = WANTED | {"content-security-policy": OWN_POLICY}
    assert seen(answer.headers.multi_items()) == wanted


@pytest.mark.parametrize("request_line", [b"GET /time HTTP/1.1", b"GET / HTTP/1.1", b"BAD"])
async def test_attack_l7_the_server_of_an_installation_sends_them(request_line: bytes) -> None:
    """An API that is not open yet, the list of APIs, and a refusal of the server itself."""
    api = ApiServer({Role.DATA: "/data", Role.TRADING: "/clob"}, "http://x", "127.0.0.1", 0)
    listener = bind("127.0.0.1", 0, "FORETELL_PORT")
    await api.start(listener)
    host, port = listener.getsockname()
    _, headers = await head_of(host, port, request_line + b"\r\nHost: x\r\n\r\n")
    await api.finish()
    assert seen(headers) == WANTED


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/closed", KEY, 403),
        ("/refused", KEY, 429),
        ("/broken", KEY, 500),
        ("/refused", "short", 400),
    ],
)
async def test_a_refused_handshake_has_the_headers(path: str, key: str, status: int) -> None:
    """Those that the server refuses without the application had none."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    )
    async with serving(SecureApplication(refuse_streams)) as place:
        host, port = place.split(":")
        found, headers = await head_of(host, int(port), request.encode())
    assert (found, seen(headers)) == (status, WANTED)


async def test_a_frame_of_a_stream_is_sent_without_a_step_for_the_headers() -> None:
    """Every published frame was awaited once more than needed."""
    given: list[object] = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        given.extend((scope, receive, send))

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope: Scope = {"type": "websocket", "path": "/"}
    await SecureApplication(stream)(scope, receive, send)
    assert given == [scope, receive, send]

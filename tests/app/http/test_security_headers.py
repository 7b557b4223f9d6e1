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
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry

pytestmark = pytest.mark.anyio

WANTED = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
OWN_POLICY = "default-src 'self'"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    policy = [(b"content-security-policy", OWN_POLICY.encode())] if scope["path"] == "/docs" else []
    headers = [(b"content-length", b"2"), *policy]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"OK"})


def reply_at_once(request: FastRequest, reply: SendReply) -> None:
    reply(FastResponse(200, request.body))


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
        httpx.AsyncClient(base_url=f"http://{host}", trust_env=False) as client,
    ):
        assert seen((await client.get(path)).headers.multi_items()) == WANTED


async def test_attack_l7_a_page_keeps_its_own_policy() -> None:
    async with (
        serving(SecureApplication(application)) as host,
        httpx.AsyncClient(base_url=f"http://{host}", trust_env=False) as client,
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
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(request_line + b"\r\nHost: x\r\n\r\n")
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    writer.close()
    await api.finish()
    lines = [line.partition(": ") for line in head.strip().split("\r\n")[1:]]
    assert seen([(name, value) for name, _, value in lines]) == WANTED

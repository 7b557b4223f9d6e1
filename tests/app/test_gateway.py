import asyncio
import socket
from collections.abc import Iterator

import httpx
import msgspec
import pytest
from tests.rigs.applications import serving
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from foretell.app.gateway import FRAME_BYTES_MAX, UNSENT_BYTES_MAX, Gateway, bind
from foretell.domain.errors.command import CannotListen, PortTaken
from foretell.edge.telemetry import AsgiApp, Receive, Scope, Send

pytestmark = pytest.mark.anyio

BASE_URL = "http://api.example"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the path that this application sees; a WebSocket gets it in a frame."""
    seen = [scope["path"], scope["raw_path"].decode(), scope["query_string"].decode()]
    if scope["type"] == "http":
        head = {"type": "http.response.start", "status": 200, "headers": []}
        await send(head)
        await send({"type": "http.response.body", "body": msgspec.json.encode(seen)})
        return
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": msgspec.json.encode(seen).decode()})
    while (await receive())["type"] != "websocket.disconnect":
        pass


def a_gateway(*prefixes: str) -> Gateway:
    return Gateway(dict.fromkeys(prefixes, echo), BASE_URL)


async def fetch(app: AsgiApp, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE_URL) as http:
        return await http.get(path)


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/clob/order", ["/order", "/order", ""]),
        ("/clob", ["/", "/", ""]),
        ("/clob/", ["/", "/", ""]),
        ("/clob/clob/x", ["/clob/x", "/clob/x", ""]),
        ("/clob/a%20b?c=%20d", ["/a b", "/a%20b", "c=%20d"]),
    ],
)
async def test_an_api_sees_the_path_that_its_clients_sign(path: str, seen: list[str]) -> None:
    assert (await fetch(a_gateway("/clob", "/data"), path)).json() == seen


async def test_an_api_alone_is_served_without_a_prefix() -> None:
    assert (await fetch(a_gateway(""), "/order")).json() == ["/order", "/order", ""]
    assert (await fetch(a_gateway(""), "/")).json() == ["/", "/", ""]


async def test_the_root_says_where_the_apis_are() -> None:
    answer = await fetch(a_gateway("/clob", "/create-market"), "/")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "clob": "http://api.example/clob",
        "create-market": "http://api.example/create-market",
    }


async def test_a_browser_gets_the_page_at_the_root_and_a_program_the_list_of_apis() -> None:
    app = a_gateway("/clob", "")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE_URL) as http:
        page = await http.get("/", headers={"accept": "text/html,application/xhtml+xml"})
        listed = await http.get("/")
    assert page.json() == ["/", "/", ""]
    assert listed.json() == {"clob": "http://api.example/clob"}


async def test_the_metrics_are_next_to_the_apis() -> None:
    answer = await fetch(a_gateway("/clob"), "/metrics")
    assert answer.status_code == 200
    assert "foretell_request_seconds" in answer.text


@pytest.mark.parametrize("path", ["/order", "/clobber/order", "/CLOB/order", "//clob/order"])
async def test_a_path_without_an_api_is_a_404_that_names_it(path: str) -> None:
    answer = await fetch(a_gateway("/clob"), BASE_URL + path)
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "code": "unknown_route",
        "message": f"no API has the path {path}",
        "details": None,
    }


async def test_a_stream_is_routed_by_its_prefix_too() -> None:
    async with (
        serving(a_gateway("/clob")) as host,
        connect(f"ws://{host}/clob/ws/market", proxy=None) as stream,
    ):
        assert msgspec.json.decode(await stream.recv()) == ["/ws/market", "/ws/market", ""]


async def test_a_stream_without_an_api_is_refused() -> None:
    async with serving(a_gateway("/clob")) as host:
        with pytest.raises(InvalidStatus, match="403"):
            await connect(f"ws://{host}/ws/market", proxy=None)


@pytest.mark.case("H-03")
async def test_a_frame_that_is_too_long_closes_its_stream_alone() -> None:
    async with (
        serving(a_gateway("/clob")) as host,
        connect(f"ws://{host}/clob/ws", proxy=None) as long,
        connect(f"ws://{host}/clob/ws", proxy=None) as short,
    ):
        await long.recv()
        await short.recv()
        await long.send("x" * (FRAME_BYTES_MAX + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await long.recv()
        await short.ping()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    "head", [b"OPTIONS * HTTP/1.1", b"CONNECT api.example:1 HTTP/1.1", b"GET clob/order HTTP/1.1"]
)
async def test_a_request_without_a_path_is_the_clients_fault(head: bytes) -> None:
    async with serving(a_gateway("/clob")) as host:
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(head + b"\r\nHost: api.example\r\n\r\n")
        status = await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        await writer.wait_closed()
    assert status.startswith(b"HTTP/1.1 4")


def test_a_port_of_another_program_is_refused_with_the_setting_that_changes_it(
    taken: socket.socket,
) -> None:
    port = taken.getsockname()[1]
    with pytest.raises(PortTaken) as refused:
        bind("127.0.0.1", port, "FORETELL_PORT")
    assert refused.value.message == (
        f"127.0.0.1:{port} is taken by another program; choose another with FORETELL_PORT"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "::ffff:192.0.2.1"])
def test_an_address_of_another_machine_is_refused_as_such(host: str) -> None:
    with pytest.raises(CannotListen, match="FORETELL_HOST"):
        bind(host, 8000, "FORETELL_PORT")


def test_a_port_is_free_again_once_it_is_closed() -> None:
    with bind("127.0.0.1", 0, "FORETELL_PORT") as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(PortTaken):
            bind("127.0.0.1", port, "FORETELL_PORT")
    bind("127.0.0.1", port, "FORETELL_PORT").close()


def test_guard_answers_that_nobody_reads_are_left_to_the_server_which_bounds_them() -> None:
    """A finding: the system took megabytes for each connection, which no bound of the server counted."""
    with bind("127.0.0.1", 0, "FORETELL_PORT") as listener, socket.socket() as client:
        listener.listen()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        with server:
            server.settimeout(0)
            assert server.send(bytes(8 * 1024 * 1024)) <= 2 * UNSENT_BYTES_MAX

import asyncio
import ssl

import pytest
from tests.rigs.scripted_api import ScriptedApi, a_client

from foretell.app.http.connection_limits import CONNECTION_LIMITS
from foretell.bench.rigs.ports import free_port
from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime
from foretell.domain.values.credentials import SKEW_PAST_S
from foretell.sdk.http import (
    ATTEMPTS_MAX,
    ATTEMPTS_WITHIN_S,
    IDLE_CONNECTIONS,
    RETRY_AFTER_S_MAX,
    HttpClient,
    usual_authorities,
    wait_for,
)
from foretell.sdk.json_rpc import JsonRpc

pytestmark = pytest.mark.anyio


async def test_clients_share_the_authorities_of_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual_authorities()
    monkeypatch.setattr(ssl, "create_default_context", None)
    async with HttpClient("https://api.test"), JsonRpc("https://node.test"):
        pass


def test_an_exchange_keeps_a_connection_for_longer_than_its_client() -> None:
    """An order after a pause of five seconds opened a new one; a client that keeps it for longer may lose an order with it."""
    kept_s = IDLE_CONNECTIONS.keepalive_expiry
    assert kept_s is not None
    assert 5 < kept_s < CONNECTION_LIMITS.keep_alive_s


async def test_a_body_is_sent_byte_for_byte() -> None:
    api, body = ScriptedApi(), b'{ "a" : 1.0 }'
    api.prepare("POST /order", {"success": True})
    async with a_client(api) as client:
        assert await client.send("POST", "/order", body, {"signature": "x"}) == {"success": True}
    (seen,) = api.received
    assert (seen.body, seen.headers["signature"]) == (body, "x")
    assert seen.headers["content-type"] == "application/json"


async def test_a_query_is_sent_with_its_names() -> None:
    api = ScriptedApi()
    api.prepare("GET /book", [])
    async with a_client(api) as client:
        assert await client.get("/book", token_id="7", limit=2) == []
    assert api.received[0].query == "token_id=7&limit=2"


async def test_a_form_is_sent_with_its_files() -> None:
    api = ScriptedApi()
    api.prepare("POST /prepare", {})
    async with a_client(api) as client:
        await client.upload(
            "/prepare", {"payload": "{}"}, {"image": ("a.png", b"PNG", "image/png")}
        )
    (seen,) = api.received
    assert seen.headers["content-type"].startswith("multipart/form-data")
    assert b'filename="a.png"' in seen.body


@pytest.mark.parametrize("status", [201, 302, 400, 500])
async def test_a_status_other_than_200_is_refused_with_its_body(status: int) -> None:
    api = ScriptedApi()
    api.prepare("GET /x", b"why " + b"x" * 5000, status=status)
    async with a_client(api) as client:
        with pytest.raises(ApiRefused, match=f"^GET /x answered {status}: why x") as refused:
            await client.get("/x")
    assert refused.value.details["status"] == status
    assert len(refused.value.message) < 2100


@pytest.mark.parametrize("status", [425, 503])
@pytest.mark.parametrize(("restarts", "attempts"), [(1, 2), (99, ATTEMPTS_MAX)])
async def test_an_unavailable_api_is_asked_again_after_its_retry_time(
    status: int, restarts: int, attempts: int
) -> None:
    api = ScriptedApi()
    for _ in range(restarts):
        api.prepare("GET /x", b"restarting", status=status)
    api.prepare("GET /x", {"at": "last"})
    async with a_client(api) as client:
        if attempts < ATTEMPTS_MAX:
            assert await client.get("/x") == {"at": "last"}
        else:
            with pytest.raises(ApiRefused, match=f"answered {status}"):
                await client.get("/x")
    assert len(api.received) == attempts


async def test_a_limit_that_outlasts_a_signature_is_refused_as_a_limit() -> None:
    """Repeated for long, the request was refused for the age of its signature instead."""
    api = ScriptedApi(retry_after_s=RETRY_AFTER_S_MAX)
    api.prepare("POST /order", b"slower", status=429)
    async with a_client(api) as client:
        client.attempts_within_s = RETRY_AFTER_S_MAX / 2
        with pytest.raises(ApiRefused, match="answered 429"):
            await client.send("POST", "/order", b"{}", is_repeatable=True)
    assert len(api.received) == 1
    assert ATTEMPTS_WITHIN_S < SKEW_PAST_S


async def test_an_api_that_does_not_answer_is_named_by_its_address() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with HttpClient(url) as client:
        with pytest.raises(ApiUnreachable, match=rf"^{url} does not answer \(ConnectError\)"):
            await client.get("/")


async def test_a_proxy_of_the_environment_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    api = ScriptedApi()
    api.prepare("GET /", b"OK")
    async with a_client(api) as client:
        assert await client.get_text("/") == "OK"


async def test_a_wait_polls_until_there_is_a_result() -> None:
    found = iter([None, None, 0])

    async def fetch() -> int | None:
        return next(found)

    assert await wait_for("a number", fetch, poll_s=0.001) == 0
    assert next(found, "nothing left") == "nothing left"


async def test_a_wait_ends_at_its_deadline_and_says_what_it_waited_for() -> None:
    async def fetch() -> None:
        await asyncio.sleep(0)

    with pytest.raises(NotInTime, match=r"^timed out after 0\.05 s waiting for a miracle$"):
        await wait_for("a miracle", fetch, deadline_s=0.05)


class BrokenServer:
    """Closes the first connections without an answer, then answers."""

    def __init__(self, broken: int) -> None:
        self.requests: list[bytes] = []
        self._broken = broken

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        if len(self.requests) > self._broken:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            await writer.drain()
        writer.close()


@pytest.mark.parametrize(
    ("request_kind", "sent"), [("GET", 3), ("repeatable POST", 3), ("POST", 1)]
)
async def test_only_what_may_be_repeated_is_sent_again_after_a_broken_connection(
    request_kind: str, sent: int
) -> None:
    broken = BrokenServer(2)
    server = await asyncio.start_server(broken.handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, HttpClient(url, unreachable_attempts=4) as client:
        try:
            if request_kind == "GET":
                answer = await client.get("/x")
            else:
                answer = await client.send("POST", "/x", b"", is_repeatable=request_kind != "POST")
        except ApiUnreachable:
            answer = None
    assert answer == ({} if sent == 3 else None)
    assert len(broken.requests) == sent

"""Requests of web pages of other origins."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from foretell.app.gateway import refuse_origin
from foretell.domain.values.origins import CrossOrigin, is_origin
from foretell.edge.cross_origin import NAMES_BYTES_MAX, CrossOriginApp
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

LISTED, UNLISTED = "https://app.example", "https://other.example"
PAGES = CrossOrigin(frozenset({LISTED}), "/create-market")
EVERY_PAGE = CrossOrigin(frozenset({"*"}), "/create-market")
SIGNED = "content-type, foretell_api_key"


async def echo(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer every request with its method, as an API does."""
    headers = [(b"content-type", b"text/plain"), (b"x-request-id", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": scope["method"].encode()})


async def fetch(
    rules: CrossOrigin,
    method: str = "GET",
    path: str = "/clob/book",
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    transport = httpx.ASGITransport(app=CrossOriginApp(echo, rules, refuse_origin))
    async with httpx.AsyncClient(transport=transport, base_url="http://api.example") as http:
        return await http.request(method, path, headers=headers)


def asked(origin: str, names: str = SIGNED) -> dict[str, str]:
    """Return the headers of a preflight."""
    return {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": names,
    }


def permissions(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-")}


async def test_a_request_without_an_origin_is_answered_as_ever() -> None:
    response = await fetch(PAGES)
    assert (response.status_code, response.text, permissions(response)) == (200, "GET", {})


@pytest.mark.deviation(7)
async def test_a_page_of_a_listed_origin_may_read_an_answer_and_its_headers() -> None:
    response = await fetch(PAGES, headers={"origin": LISTED})
    assert response.headers["access-control-allow-origin"] == LISTED
    assert response.headers["vary"] == "origin"
    assert "retry-after" in response.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("headers", [{}, {"origin": UNLISTED}])
async def test_a_cache_keeps_an_answer_for_each_origin(headers: dict[str, str]) -> None:
    """A finding: an answer without a permission was kept for the pages that have one."""
    assert (await fetch(PAGES, headers=headers)).headers["vary"] == "origin"


async def test_every_page_may_use_the_sandbox() -> None:
    response = await fetch(EVERY_PAGE, "POST", "/create-market/prepare", {"origin": UNLISTED})
    assert response.headers["access-control-allow-origin"] == "*"
    assert "vary" not in response.headers


async def test_a_page_of_another_origin_is_shown_no_answer() -> None:
    response = await fetch(PAGES, headers={"origin": UNLISTED})
    assert (response.status_code, permissions(response)) == (200, {})


@pytest.mark.deviation(7)
@pytest.mark.spec(148)
@pytest.mark.parametrize("path", ["/create-market/prepare-auth", "/create-market/prepare"])
@pytest.mark.parametrize(
    "origin", [UNLISTED, "null", "https://app.example.evil", "http://app.example"]
)
async def test_a_page_of_another_origin_changes_nothing_at_the_worker(
    path: str, origin: str
) -> None:
    response = await fetch(PAGES, "POST", path, {"origin": origin})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "origin_not_allowed"
    assert permissions(response) == {}
    allowed = await fetch(PAGES, "POST", path, {"origin": LISTED})
    assert (allowed.status_code, allowed.text) == (200, "POST")


async def test_a_preflight_permits_the_headers_that_clients_sign_with() -> None:
    response = await fetch(PAGES, "OPTIONS", headers=asked(LISTED))
    assert (response.status_code, response.content) == (204, b"")
    assert permissions(response) == {
        "access-control-allow-origin": LISTED,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": SIGNED,
        "access-control-max-age": "600",
    }


async def test_a_preflight_of_another_origin_is_refused() -> None:
    response = await fetch(PAGES, "OPTIONS", headers=asked(UNLISTED))
    assert (response.status_code, permissions(response)) == (403, {})


@pytest.mark.parametrize("names", ["x: y", "a\tb", "x" * (NAMES_BYTES_MAX + 1)])
async def test_names_that_are_no_headers_are_not_repeated(names: str) -> None:
    response = await fetch(PAGES, "OPTIONS", headers=asked(LISTED, names))
    assert response.headers["access-control-allow-headers"] == ""


async def test_an_ordinary_request_for_options_is_the_applications() -> None:
    response = await fetch(PAGES, "OPTIONS", headers={"origin": LISTED})
    assert (response.status_code, response.text) == (200, "OPTIONS")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("*", True),
        ("https://a.example", True),
        ("http://[::1]:8000", True),
        ("https://a.example/", False),
        ("https://a.example,https://b.example", False),
        ("a.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_an_origin_is_a_scheme_and_a_host(text: str, *, is_one: bool) -> None:
    assert is_origin(text) is is_one


async def test_a_stream_is_open_to_every_page() -> None:
    """Its private messages need credentials, which no browser adds by itself."""

    async def stream(scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept", "path": scope["path"]})

    app = CrossOriginApp(stream, PAGES, refuse_origin)
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"origin", UNLISTED.encode())]
    await app({"type": "websocket", "path": "/clob/ws/market", "headers": headers}, receive, send)
    assert sent == [{"type": "websocket.accept", "path": "/clob/ws/market"}]

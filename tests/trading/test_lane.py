"""The fast lane and the application behind it must not be told apart."""

import json
from typing import Any

import httpx
import pytest
from tests.build import a_buy, a_sell, an_asset
from tests.trading.venue import Trader, Venue, client_of

from foretell.edge.codec import BODY_BYTES_MAX

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
MEANT = ("content-type", "content-length", "retry-after")


def told(response: httpx.Response) -> tuple[int, Any, dict[str, str]]:
    headers = {name: response.headers[name] for name in MEANT if name in response.headers}
    return response.status_code, response.content, headers


async def both(venue: Venue, method: str, path: str, **fields: Any) -> httpx.Response:
    """Send a request to each, and return the answer that both must give."""
    async with client_of(venue.litestar) as behind:
        slow = await behind.request(method, path, **fields)
    fast = await venue.client.request(method, path, **fields)
    assert told(fast) == told(slow)
    return fast


@pytest.mark.parametrize(
    "query",
    [
        f"token_id={YES}",
        f"x=1&token_id={YES}&token_id=12",
        f"token_id=12&token_id={YES}",
        "token_id=",
        "",
        "token_id=0x12",
        "token_id=12",
        "token_id=%D9%A3",
        f"token_id={YES}&strict=true&other=1",
        "token_id=%00",
    ],
)
async def test_books_are_the_same(venue: Venue, query: str) -> None:
    await venue.rest(a_buy("alice"))
    await both(venue, "GET", f"/book?{query}")


async def test_orders_are_the_same(venue: Venue, alice: Trader, bob: Trader) -> None:
    await bob.placed(a_sell("bob"))
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    first = await venue.client.post("/order", content=body, headers=headers)
    again = await both(venue, "POST", "/order", content=body, headers=headers)
    assert first.json() | {"replayed": True} == again.json()


async def test_cancels_are_the_same(venue: Venue, alice: Trader) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    body = json.dumps({"orderID": order_id}).encode()
    headers = alice.l2_headers("DELETE", "/order", body)
    await venue.client.request("DELETE", "/order", content=body, headers=headers)
    await both(venue, "DELETE", "/order", content=body, headers=headers)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"x", b"\xff", b'{"orderID":5}', b'{"order":{}}']
)
async def test_refused_bodies_are_the_same(
    venue: Venue, alice: Trader, method: str, body: bytes
) -> None:
    headers = alice.l2_headers(method, "/order", body)
    response = await both(venue, method, "/order", content=body, headers=headers)
    assert response.status_code == 400


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_callers_without_credentials_are_refused_the_same(
    venue: Venue, alice: Trader, method: str
) -> None:
    assert (await both(venue, method, "/order", content=b"{}")).status_code == 401
    headers = alice.l2_headers(method, "/order", b"another body")
    response = await both(venue, method, "/order", content=b"{}", headers=headers)
    assert response.json()["code"] == "l2_signature_mismatch"


async def test_a_body_that_is_too_large_is_refused_the_same(venue: Venue) -> None:
    response = await both(venue, "POST", "/order", content=b" " * (BODY_BYTES_MAX + 1))
    assert (response.status_code, response.json()["error"]) == (400, "Payload exceeds the limit")


async def test_what_says_to_come_back_is_the_same(venue: Venue, alice: Trader) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    venue.host.engine._is_ready = False
    response = await both(venue, "POST", "/order", content=body, headers=headers)
    venue.host.engine._is_ready = True
    assert (response.status_code, response.headers["retry-after"]) == (425, "1")
    assert response.json()["retry_after_seconds"] == 1


async def test_a_fault_of_ours_is_told_the_same_and_tells_nothing(
    venue: Venue, alice: Trader
) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    venue.chain.failure = ZeroDivisionError("a secret place")
    response = await both(venue, "POST", "/order", content=body, headers=headers)
    assert (response.status_code, response.json()["error"]) == (500, "Internal server error")
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/order"), ("PUT", "/order"), ("POST", "/book"), ("GET", "/booky")]
)
async def test_other_methods_and_paths_are_the_applications(
    venue: Venue, method: str, path: str
) -> None:
    response = await both(venue, method, path)
    assert response.status_code in {404, 405}
    assert set(response.json()) >= {"error", "code", "message"}

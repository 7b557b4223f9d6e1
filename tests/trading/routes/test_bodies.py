"""Bodies of callers that name no key are not read."""

import asyncio
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig

from foretell.app.http.fast_routes import served_under
from foretell.edge.telemetry import AsgiApp, Telemetry
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
ROUTES = [
    ("POST", "/order"),
    ("POST", "/orders"),
    ("DELETE", "/orders"),
    ("DELETE", "/cancel-market-orders"),
    ("POST", "/v1/heartbeats"),
]


async def status_without_body(app: AsgiApp, method: str, path: str, headers: Any) -> int:
    """Return the status of a request whose body must not be read."""
    statuses: list[int] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await app(scope, receive, send)
    return statuses[0]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_attack_h5_nothing_of_a_strangers_body_is_read(
    rig: TradingRig, alice: Trader, method: str, path: str
) -> None:
    signed = alice.l2_headers(method, path, b"{}") | {"content-length": "65536"}
    strangers = [
        {"content-length": "65536"},
        signed | {f"{alice.prefix}PASSPHRASE": "0" * 64},
        signed | {f"{alice.prefix}API_KEY": "00000000-0000-4000-8000-000000000000"},
        signed | {f"{alice.prefix}TIMESTAMP": "1"},
    ]
    for headers in strangers:
        assert await status_without_body(rig.app, method, path, headers) == 401


@pytest.mark.parametrize(("method", "path"), [("POST", "/order"), ("DELETE", "/order")])
async def test_attack_h5_the_fast_path_waits_for_no_strangers_body(
    rig: TradingRig, alice: Trader, method: str, path: str
) -> None:
    """It once collected 64 KiB of a body before it looked at the key."""
    telemetry = Telemetry(rig.app, "bodies", lambda: "an id")
    stranger = alice.l2_headers(method, path) | {f"{alice.prefix}PASSPHRASE": "0" * 64}
    async with serving(rig.app, served_under("", fast_routes(rig.context), telemetry)) as host:
        name, port = host.split(":")
        for headers, wanted in ((stranger, 401), (alice.l2_headers(method, path, b"{}"), 400)):
            reader, writer = await asyncio.open_connection(name, int(port))
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: 2\r\n\r\n"
            writer.write(head.encode() + b"{")
            async with asyncio.timeout(WITHIN_S):
                if wanted == 400:
                    await asyncio.sleep(0.05)
                    writer.write(b"}")
                status = (await reader.readline()).split()[1]
            writer.close()
            assert int(status) == wanted

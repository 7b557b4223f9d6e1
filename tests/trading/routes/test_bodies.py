"""Bodies of callers that name no key are not read."""

from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig

from foretell.edge.telemetry import AsgiApp

pytestmark = pytest.mark.anyio

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

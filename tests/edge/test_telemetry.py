"""The counters and the log lines of requests."""

from typing import Any

import httpx
import pytest
import structlog
from litestar import Litestar, get
from litestar.params import FromPath
from prometheus_client import REGISTRY

from foretell.data.refusals import data_body
from foretell.domain.errors.http import UnknownRecord
from foretell.edge.refusals import handlers
from foretell.edge.telemetry import REQUEST_ID_CHARS_MAX, Telemetry

pytestmark = pytest.mark.anyio


@get("/things/{thing_id:str}/parts")
async def get_parts(thing_id: FromPath[str]) -> str:
    if thing_id == "none":
        raise UnknownRecord("thing")
    return thing_id


def a_client(api: str) -> httpx.AsyncClient:
    """Return a client of an API with one route and its own counters."""
    app = Litestar(
        [get_parts],
        exception_handlers=handlers(data_body),
        openapi_config=None,
        logging_config=None,
    )
    telemetry = Telemetry(app, api, lambda: "a new id")
    transport = httpx.ASGITransport(telemetry)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


def counted(api: str) -> dict[tuple[str, str, str], float]:
    """Return the counters of an API by method, route and status."""
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "foretell_requests_total" and sample.labels["api"] == api
    }


async def test_requests_are_counted_by_route_and_not_by_path() -> None:
    async with a_client("ids") as client:
        for thing in range(20):
            await client.get(f"/things/{thing}/parts")
        await client.get("/things/none/parts")
    route = "/things/{thing_id}/parts"
    assert counted("ids") == {("GET", route, "200"): 20, ("GET", route, "404"): 1}


async def test_requests_without_a_route_are_counted_together() -> None:
    async with a_client("unknown") as client:
        for path in range(20):
            await client.get(f"/{path}/{path}")
        await client.delete("/things/1/parts")
    assert counted("unknown") == {("GET", "other", "404"): 20, ("DELETE", "other", "405"): 1}


async def test_requests_of_methods_that_no_route_answers_are_counted_together() -> None:
    async with a_client("methods") as client:
        for method in ("PROPFIND", "M-SEARCH", "SOURCE", "QUERY", "UNLINK"):
            await client.request(method, "/things/1/parts")
        await client.get("/things/1/parts")
    assert counted("methods") == {
        ("other", "other", "405"): 5,
        ("GET", "/things/{thing_id}/parts", "200"): 1,
    }


async def test_no_part_of_a_sent_path_is_logged() -> None:
    with structlog.testing.capture_logs() as entries:
        async with a_client("logged") as client:
            await client.get("/things/canary/parts?canary=1")
    logged: list[Any] = [entry for entry in entries if entry["event"] == "request"]
    assert [entry["route"] for entry in logged] == ["/things/{thing_id}/parts"]
    assert "canary" not in str(entries)


@pytest.mark.parametrize(
    ("given", "answered"),
    [
        ("abc-123", "abc-123"),
        ("a" * REQUEST_ID_CHARS_MAX, "a" * REQUEST_ID_CHARS_MAX),
        ("a" * (REQUEST_ID_CHARS_MAX + 1), "a new id"),
        ("a b", "a new id"),
        ("", "a new id"),
    ],
)
async def test_a_safe_id_of_the_client_is_repeated(given: str, answered: str) -> None:
    async with a_client("named") as client:
        answer = await client.get("/things/1/parts", headers={"x-request-id": given})
    assert answer.headers["x-request-id"] == answered

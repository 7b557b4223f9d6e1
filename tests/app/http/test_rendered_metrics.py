"""The metrics are rendered once for all who ask within a second, and an address gets a few."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.rigs.applications import serving

from foretell.app.gateway import Gateway
from foretell.app.http.rendered_metrics import (
    ADDRESSES_MAX,
    ANSWERS_BURST,
    ANSWERS_PER_S,
    KEPT_S,
    RenderedMetrics,
)
from foretell.app.metrics_server import MetricsApplication
from foretell.edge.telemetry import AsgiApp

pytestmark = pytest.mark.anyio

REQUESTS = int(ANSWERS_BURST)
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n%s\r\n"


class Rendering:
    """A rendering that is counted, and a clock."""

    def __init__(self) -> None:
        self.times = 0
        self.clock_s = 0.0

    def now_s(self) -> float:
        return self.clock_s

    def render(self) -> bytes:
        self.times += 1
        return b"rendered %d" % self.times


@pytest.fixture
def rendering() -> Rendering:
    return Rendering()


@pytest.fixture
def metrics(rendering: Rendering, monkeypatch: pytest.MonkeyPatch) -> RenderedMetrics:
    """Give the metrics that every server built meanwhile has."""
    metrics = RenderedMetrics(rendering.now_s, rendering.render)
    for module in ("gateway", "metrics_server"):
        monkeypatch.setattr(f"foretell.app.{module}.RenderedMetrics", lambda: metrics)
    return metrics


def at_the_apis() -> Any:
    return Gateway({}, "http://api.example")


@pytest.mark.parametrize("server", [at_the_apis, MetricsApplication])
async def test_many_requests_at_once_cost_one_rendering(
    server: Callable[[], AsgiApp], rendering: Rendering, metrics: RenderedMetrics
) -> None:
    del metrics
    async with serving(server()) as host:
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(REQUEST % b"" * (REQUESTS - 1) + REQUEST % b"Connection: close\r\n")
        answers = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answers.count(b"\r\n\r\nrendered 1") == REQUESTS
    assert rendering.times == 1


@pytest.mark.parametrize("server", [at_the_apis, MetricsApplication])
async def test_after_a_second_the_metrics_are_new(
    server: Callable[[], AsgiApp], rendering: Rendering, metrics: RenderedMetrics
) -> None:
    del metrics
    texts = []
    transport = httpx.ASGITransport(server())
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        for clock_s in (0.0, KEPT_S - 0.01, KEPT_S, KEPT_S + 0.01):
            rendering.clock_s = clock_s
            texts.append((await http.get("/metrics")).text)
    assert texts == ["rendered 1", "rendered 1", "rendered 2", "rendered 2"]


def test_a_rendering_that_fails_is_tried_again(rendering: Rendering) -> None:
    def fail_once() -> bytes:
        if rendering.times == 0:
            rendering.times += 1
            raise ValueError("a collector failed")
        return rendering.render()

    metrics = RenderedMetrics(rendering.now_s, fail_once)
    with pytest.raises(ValueError, match="a collector failed"):
        metrics.text_for("10.0.0.1")
    assert metrics.text_for("10.0.0.1") == b"rendered 2"


@pytest.mark.parametrize("server", [at_the_apis, MetricsApplication])
async def test_an_address_that_asks_too_often_is_refused_and_no_other(
    server: Callable[[], AsgiApp], rendering: Rendering, metrics: RenderedMetrics
) -> None:
    """Sending a large text takes the event loop's time, too, even if it is not rendered again."""
    del metrics
    app = server()
    many, one = (
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://test"
        )
        for address in ("10.0.0.1", "10.0.0.2")
    )
    async with many, one:
        statuses = Counter([(await many.get("/metrics")).status_code for _ in range(100)])
        refused = await many.get("/metrics")
        assert (await one.get("/metrics")).status_code == 200
        rendering.clock_s += 1.5 / ANSWERS_PER_S
        later = [(await many.get("/metrics")).status_code for _ in range(2)]
    assert statuses == {200: REQUESTS, 429: 100 - REQUESTS}
    assert refused.json()["error"]["code"] == "too_many_requests"
    assert (refused.headers["retry-after"], later) == ("1", [200, 429])


def test_the_addresses_that_are_remembered_are_bounded(metrics: RenderedMetrics) -> None:
    for number in range(ADDRESSES_MAX + 10):
        assert metrics.text_for(f"10.0.{number // 250}.{number % 250}") == b"rendered 1"
    assert len(metrics._allowance_by_client) == ADDRESSES_MAX

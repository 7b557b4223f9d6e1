"""The metrics at a port of their own."""

import asyncio

import httpx
import pytest
from tests.app.rig import get
from tests.rigs.in_process import installed

from foretell.app.gateway import bind
from foretell.app.metrics_server import MetricsServer
from foretell.app.roles import Role
from foretell.bench.rigs.ports import free_port, is_free
from foretell.domain.errors.command import ComponentStopped, PortTaken
from foretell.edge.security_headers import SECURITY_HEADERS
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

SECURITY = [(name.decode(), value.decode()) for name, value in SECURITY_HEADERS]
WITHIN_S = 60.0


@pytest.fixture
def port() -> int:
    return free_port()


async def at(port: int, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        return await http.get(f"http://127.0.0.1:{port}{path}")


async def test_attack_l7_metrics_with_a_port_are_not_next_to_the_apis(
    settings: Settings, port: int
) -> None:
    own = settings.model_copy(update={"metrics_port": port})
    async with installed(own, [Role.DATA]):
        assert (await get(own, "/")).status_code == 200
        refused = await get(own, "/metrics")
        metrics = await at(port, "/metrics")
        elsewhere = await at(port, "/status")
    assert (refused.status_code, elsewhere.status_code) == (404, 404)
    assert refused.headers["content-type"] == "application/json"
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "foretell_requests_total{" in metrics.text
    for answer in (metrics, elsewhere):
        assert dict(SECURITY).items() <= dict(answer.headers).items()
    assert is_free(port)


async def test_a_server_of_metrics_that_ends_by_itself_stops_everything(
    settings: Settings, port: int
) -> None:
    """Nothing noticed it: the process went on without its metrics."""
    own = settings.model_copy(update={"metrics_port": port})
    async with installed(own, [Role.DATA]) as running:
        assert running.metrics is not None
        running.metrics.server.limit_max_requests = 1
        assert (await at(port, "/metrics")).status_code == 200
        with pytest.raises(ExceptionGroup) as group:
            await asyncio.wait_for(running.wait(), WITHIN_S)
    (cause,) = group.value.exceptions
    assert isinstance(cause, ComponentStopped)
    assert "metrics server" in str(cause)


async def test_a_port_of_another_program_is_refused_with_its_setting(port: int) -> None:
    with bind("127.0.0.1", port, "FORETELL_PORT") as taken:
        taken.listen()
        with pytest.raises(PortTaken, match="FORETELL_METRICS_PORT"):
            await MetricsServer(port).start()


async def test_workers_share_the_port(port: int) -> None:
    workers = [MetricsServer(port, is_shared=True) for _ in range(2)]
    for each in workers:
        await each.start()
    await workers[0].finish()
    assert (await at(port, "/metrics")).status_code == 200
    await workers[1].finish()

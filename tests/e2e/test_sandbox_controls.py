"""No route of the sandbox hands out collateral or moves its clock: those are calls of the dev chain."""

import httpx
import pytest
from tests.e2e.walker import BUILD_BY_PREFIX
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]


@pytest.mark.deviation(23)
@pytest.mark.parametrize("prefix", ["", *BUILD_BY_PREFIX])
@pytest.mark.parametrize("path", ["/sandbox", "/sandbox/clock", "/faucet"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_route_controls_the_sandbox(
    shared: Running, prefix: str, path: str, method: str
) -> None:
    await shared.ready()
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.request(method, f"http://127.0.0.1:{shared.port}{prefix}{path}")
    assert answer.status_code == 404

"""Rate limits of an account at the relayer, which all its keys share, as an owner and as a builder."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from tests.relayer.rig import OwnerClient, RelayerRig
from tests.relayer.test_callers import builder_headers

from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import RateLimits, windows_with
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication
from foretell.relayer.refusals import relayer_body

pytestmark = pytest.mark.anyio

UNKNOWN = "/v1/account/transactions/unknown"


@pytest.fixture
async def http(rig: RelayerRig) -> AsyncIterator[httpx.AsyncClient]:
    limits = RateLimits(windows_with({"relayer": "9/10s"}))
    limiter = RateLimiter("relayer", limits, rig.clock.now_ms)
    app = ThrottledApplication(rig.app, ApiLimits(limiter, relayer_body))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://relayer.test") as client:
        yield client


async def test_attack_h4_the_keys_of_an_account_share_the_relayers_limits(
    rig: RelayerRig, newcomer: OwnerClient, http: httpx.AsyncClient
) -> None:
    second = OwnerClient(rig, newcomer.account, nonce=1)
    await second.create_key()
    left = []
    for client in (newcomer, second):
        answer = await http.get(UNKNOWN, headers=client.l2_headers("GET", UNKNOWN))
        left.append(answer.headers["ratelimit-remaining"])
    raw = json.dumps({}).encode()
    for client in (newcomer, second):
        headers = builder_headers(client, "/submit", raw)
        answer = await http.post("/submit", content=raw, headers=headers)
        left.append(answer.headers["ratelimit-remaining"])
    assert left == ["8", "7", "6", "5"]
    other = await rig.owner("another")
    answer = await http.get(UNKNOWN, headers=other.l2_headers("GET", UNKNOWN))
    assert answer.headers["ratelimit-remaining"] == "8"

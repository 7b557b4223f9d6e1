"""HEAD works where GET does: every route of every API is asked by both."""

import httpx
import pytest
from tests.e2e.walker import BUILD_BY_PREFIX, Walker, get_paths
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

VARYING = {"date", "x-request-id", "ratelimit-remaining", "ratelimit-reset", "x-throttled-ms"}
SUCCEEDING_MIN = {"/clob": 45, "/create-market": 5, "/relayer": 6, "/data": 18, "/discovery": 20}
"""How many routes of each API succeed with the parameters below, at least."""


ASKED_MAX = 20
"""How often GET is asked until two answers with a HEAD between them are equal: the chain goes on meanwhile."""
COUNTING = "/limits"
"""Its body has the requests that are left, which every answer changes, and sometimes their number of digits."""


def kept(path: str, answer: httpx.Response) -> dict[str, str]:
    varying = VARYING | {"content-length"} if path == COUNTING else VARYING
    return {name: value for name, value in answer.headers.items() if name not in varying}


async def get_and_head(
    walker: Walker, http: httpx.AsyncClient, prefix: str, path: str
) -> tuple[httpx.Response, httpx.Response]:
    """Return the answers to GET and HEAD of one state."""
    got = await walker.ask(http, "GET", prefix, path)
    for _ in range(ASKED_MAX):
        head = await walker.ask(http, "HEAD", prefix, path)
        before, got = got, await walker.ask(http, "GET", prefix, path)
        if (before.status_code, kept(path, before)) == (got.status_code, kept(path, got)):
            return got, head
    raise AssertionError(f"the answers to GET {path} change all the time")


@pytest.mark.deviation(18)
@pytest.mark.parametrize("prefix", BUILD_BY_PREFIX)
async def test_head_is_answered_as_get_without_the_body(walker: Walker, prefix: str) -> None:
    paths = get_paths(prefix)
    succeeding = 0
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        for path in paths:
            got, head = await get_and_head(walker, http, prefix, path)
            assert (path, head.status_code) == (path, got.status_code)
            assert (path, kept(path, head)) == (path, kept(path, got))
            assert head.content == b""
            length = int(head.headers["content-length"])
            assert length == len(got.content) or path == COUNTING
            assert got.status_code < 500, (path, got.text)
            succeeding += got.status_code == 200
    assert succeeding >= SUCCEEDING_MIN[prefix], f"{succeeding} of {len(paths)}"


@pytest.mark.parametrize("path", ["/", "/metrics", "/nowhere"])
async def test_the_gateway_answers_head_too(shared: Running, path: str) -> None:
    await shared.ready()
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"http://127.0.0.1:{shared.port}{path}"
        got, head = await http.get(url), await http.head(url)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


async def test_a_signature_of_get_is_none_of_head(walker: Walker, shared: Running) -> None:
    headers = walker._trader.l2_headers("GET", "/data/orders")
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"http://127.0.0.1:{shared.port}/clob/data/orders"
        assert (await http.get(url, headers=headers)).status_code == 200
        assert (await http.head(url, headers=headers)).status_code == 401


async def test_head_of_another_route_names_head(shared: Running) -> None:
    await shared.ready()
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"http://127.0.0.1:{shared.port}/clob"
        refused = await http.head(f"{url}/orders")
        allowed = await http.delete(f"{url}/time")
    assert (refused.status_code, "HEAD" in refused.headers["allow"]) == (405, False)
    assert "HEAD" in allowed.headers["allow"].split(", ")
